//! `agent.enabled`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const AUTO: &str = "auto";

/// Whether the agent runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentMode {
    /// If something is configured that it does.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

impl AgentMode {
    /// Whether it runs, if `needed` says that something is configured that it does.
    #[must_use]
    pub const fn runs(self, needed: bool) -> bool {
        match self {
            Self::Auto => needed,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

impl From<bool> for AgentMode {
    fn from(runs: bool) -> Self {
        if runs { Self::Always } else { Self::Never }
    }
}

impl Serialize for AgentMode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => to.serialize_str(AUTO),
            Self::Always => to.serialize_bool(true),
            Self::Never => to.serialize_bool(false),
        }
    }
}

struct ModeVisitor;

impl de::Visitor<'_> for ModeVisitor {
    type Value = AgentMode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("auto, true or false")
    }

    fn visit_bool<E: de::Error>(self, runs: bool) -> Result<AgentMode, E> {
        Ok(runs.into())
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<AgentMode, E> {
        if word == AUTO {
            Ok(AgentMode::Auto)
        } else {
            Err(E::invalid_value(de::Unexpected::Str(word), &self))
        }
    }
}

impl<'de> Deserialize<'de> for AgentMode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ModeVisitor)
    }
}

impl JsonSchema for AgentMode {
    fn schema_name() -> Cow<'static, str> {
        "AgentMode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "oneOf": [
            { "const": AUTO, "description": "If a provider is listed under `models`, or anything under `extensions`." },
            { "const": true, "description": "In any case." },
            { "const": false, "description": "In no case." },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_and_booleans_are_read_back_as_they_are_written() {
        for (mode, value) in [
            (AgentMode::Auto, json!("auto")),
            (AgentMode::Always, json!(true)),
            (AgentMode::Never, json!(false)),
        ] {
            assert_eq!(serde_json::to_value(mode).expect("a value"), value);
            assert_eq!(serde_json::from_value::<AgentMode>(value).expect("a mode"), mode);
        }
        let error = serde_json::from_value::<AgentMode>(json!("yes")).expect_err("no mode").to_string();
        assert!(error.contains("expected auto, true or false"), "{error}");
    }

    #[test]
    fn auto_is_what_is_needed() {
        assert_eq!([true, false].map(|needed| AgentMode::Auto.runs(needed)), [true, false]);
        assert_eq!([true, false].map(|needed| AgentMode::Always.runs(needed)), [true, true]);
        assert_eq!([true, false].map(|needed| AgentMode::Never.runs(needed)), [false, false]);
    }
}
