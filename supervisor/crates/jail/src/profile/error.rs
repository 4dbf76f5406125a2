//! Why a profile is refused.

/// Why a profile is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The file is too large.
    #[error("profile {origin}: {bytes} bytes, the most is {limit} (is it a profile? extend a built-in one)")]
    TooLarge {
        /// Its path or name.
        origin: String,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// Something in a line of the file is wrong.
    #[error("profile {origin}, line {line}: {problem}")]
    Line {
        /// Its path or name.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong there and what to do about it.
        problem: String,
    },
    /// The profile as a whole is wrong.
    #[error("profile {origin}: {problem}")]
    Invalid {
        /// Its path or name.
        origin: String,
        /// What is wrong and what to do about it.
        problem: String,
    },
}

impl ProfileError {
    pub(super) fn invalid(origin: &str, problem: impl Into<String>) -> Self {
        Self::Invalid { origin: quoted(origin), problem: problem.into() }
    }
}

/// The most characters of the file that a message quotes: enough for a name, but not for a whole file.
const QUOTE_MAX_CHARS: usize = 200;

/// Quotes text of a file in a message: truncated, and without control characters.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String =
        text.chars().take(QUOTE_MAX_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(QUOTE_MAX_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
