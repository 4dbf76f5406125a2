//! How long models think, as clients say it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How long models think; configured, or an empty text: as the configuration says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ThinkingLevel {
    #[default]
    #[serde(alias = "")]
    Configured,
    Off,
    Low,
    Medium,
    High,
}

impl ThinkingLevel {
    /// The agent's word for it.
    pub(crate) fn word(self) -> String {
        let word = match self {
            Self::Configured => "",
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        };
        word.to_owned()
    }
}
