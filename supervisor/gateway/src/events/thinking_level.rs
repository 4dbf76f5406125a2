//! How long models think, as clients say it.

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// How long models think; configured, or an empty text: as the configuration says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Written here, since a derived one leaves the alias out.
impl PartialSchema for ThinkingLevel {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "How long models think; configured, or an empty text: as the configuration says.",
            ))
            .enum_values(Some(["configured", "off", "low", "medium", "high", ""]))
            .into()
    }
}

impl ToSchema for ThinkingLevel {}

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
