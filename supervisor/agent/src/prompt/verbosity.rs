//! How detailed the answers of a session are.

/// How detailed answers are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// What was asked for, and no more.
    Low,
    /// With reasons and details.
    High,
}

impl Verbosity {
    /// Parses its word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "low" => Some(Self::Low),
            "high" => Some(Self::High),
            _ => None,
        }
    }

    /// The line of the prompt.
    pub(super) fn line(self) -> &'static str {
        match self {
            Self::Low => "\n- This user wants short answers: what was asked for, and no more.",
            Self::High => "\n- This user wants detailed answers: with reasons, steps and examples.",
        }
    }
}
