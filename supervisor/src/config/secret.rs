//! Values that are used but never shown.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// The text that is displayed in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// A text that neither `Debug` nor `Serialize` reveals.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret text, for the code that uses it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-secret": true })
    }
}

/// Names of keys and variables under which people keep secrets.
const TELLING_WORDS: [&str; 7] = ["token", "secret", "password", "passwd", "credential", "api_key", "apikey"];

/// Whether a key's name says that its value is a secret. Errs on the side of hiding.
#[must_use]
pub fn sounds_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    TELLING_WORDS.iter().any(|word| key.contains(word))
        || key.split('_').any(|word| matches!(word, "key" | "auth" | "pass" | "pw" | "pwd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CONF-13
    #[test]
    fn a_secret_shows_itself_nowhere() {
        let secret = Secret::from("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), REDACTED);
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"[redacted]\"");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn telling_names_are_known() {
        for name in ["GITHUB_TOKEN", "apiKey", "db-password", "AWS_SECRET_ACCESS_KEY", "X_AUTH", "pw"] {
            assert!(sounds_secret(name), "{name}");
        }
        for name in ["TZ", "root", "keyboard", "author", "compass"] {
            assert!(!sounds_secret(name), "{name}");
        }
    }
}
