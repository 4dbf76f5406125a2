//! How much of a model's window may be used.
//!
//! | | left | for a window of 128,000 and more | of 8,000 |
//! |---|---|---|---|
//! | warn | less than a quarter, at most 32,000 | 32,000 | 2,000 |
//! | refuse | less than an eighth, at most 16,000 | 16,000 | 1,000 |
//!
//! The founding numbers are for windows of 128,000; a smaller window keeps the same shares. What is left is
//! what the model answers with, and thinks with.

use serde::Serialize;

/// Below this much left, a warning.
const WARN_LEFT: usize = 32_000;
/// Below this much left, no question.
const REFUSE_LEFT: usize = 16_000;
/// The share of a small window, as a divisor.
const WARN_SHARE: usize = 4;
/// See [`WARN_SHARE`].
const REFUSE_SHARE: usize = 8;

/// A model's window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Window(pub usize);

/// How a question fits into a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum WindowStatus {
    /// It fits.
    Fits {
        /// Tokens left for the answer.
        left: usize,
    },
    /// It fits, but little is left.
    Tight {
        /// Tokens left for the answer.
        left: usize,
    },
    /// Too little is left for an answer.
    Full {
        /// Tokens left for the answer; 0 if the question alone is too long.
        left: usize,
    },
}

impl Window {
    /// Below this many tokens left, there is a warning.
    #[must_use]
    pub fn warn_left(self) -> usize {
        WARN_LEFT.min(self.0 / WARN_SHARE)
    }

    /// Below this many tokens left, the question is not asked.
    #[must_use]
    pub fn refuse_left(self) -> usize {
        REFUSE_LEFT.min(self.0 / REFUSE_SHARE)
    }

    /// The tokens that can be used without a warning.
    #[must_use]
    pub fn comfortable(self) -> usize {
        self.0 - self.warn_left()
    }

    /// How a question of so many tokens fits.
    #[must_use]
    pub fn status(self, used: usize) -> WindowStatus {
        let left = self.0.saturating_sub(used);
        if left < self.refuse_left() || left == 0 {
            WindowStatus::Full { left }
        } else if left < self.warn_left() {
            WindowStatus::Tight { left }
        } else {
            WindowStatus::Fits { left }
        }
    }
}

impl WindowStatus {
    /// The message for people, if the window is tight or full: the problem and what to do.
    #[must_use]
    pub fn message(self) -> Option<String> {
        match self {
            Self::Fits { .. } => None,
            Self::Tight { left } => Some(format!(
                "The model's window is nearly full: {left} tokens are left. Compact the session, or send less at once."
            )),
            Self::Full { left } => Some(format!(
                "The model's window is full: {left} tokens are left for an answer. Send less at once, compact the session, or choose \
                 a model with a larger window."
            )),
        }
    }
}
