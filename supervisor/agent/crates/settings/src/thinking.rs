//! How much models think.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `thinkingLevel`: how much a model should think before it answers.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// Not at all, if the model supports that.
    #[default]
    Off,
    /// Briefly.
    Low,
    /// Enough for most tasks.
    Medium,
    /// Long.
    High,
}

impl Thinking {
    /// The word for it: `off`, `low`, `medium` or `high`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}
