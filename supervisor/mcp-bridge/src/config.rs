//! The plugin's `config`, for an MCP server.

use std::collections::{BTreeMap, HashMap};

use http::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use serde::Deserialize;
use talon_sdk::ToolError;

/// The settings of the operator.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The tools that are offered; all by default.
    pub(crate) tools: Option<Vec<String>>,
    /// The revision of MCP: `auto`, or its date.
    protocol: Option<String>,
    /// Headers of every request, with `url` only.
    headers: BTreeMap<String, String>,
    /// The answer to `roots/list`: `granted`, or paths; by default none.
    pub(crate) roots: Option<serde_json::Value>,
}

/// Which revision is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Revision {
    /// The newest that the server supports.
    Auto,
    /// Only this one.
    Only(ProtocolVersion),
}

/// Headers that belong to the transport.
const RESERVED: [&str; 9] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

impl Config {
    /// The revision to use.
    ///
    /// # Errors
    /// When it is unknown.
    pub(crate) fn revision(&self) -> Result<Revision, ToolError> {
        let word = self.protocol.as_deref().unwrap_or("auto");
        if word == "auto" {
            return Ok(Revision::Auto);
        }
        let known = ProtocolVersion::KNOWN_VERSIONS;
        match known.iter().find(|version| version.as_str() == word) {
            Some(version) => Ok(Revision::Only(version.clone())),
            None => {
                let names: Vec<_> = known.iter().map(ProtocolVersion::as_str).collect();
                Err(ToolError::new(format!("config.protocol: write auto, or one of {}", names.join(", "))))
            }
        }
    }

    /// The headers of every request.
    ///
    /// # Errors
    /// When one cannot be sent; values are secrets and are not repeated.
    pub(crate) fn headers(&self) -> Result<HashMap<HeaderName, HeaderValue>, ToolError> {
        let mut headers = HashMap::new();
        for (name, value) in &self.headers {
            let refused = |why: &str| ToolError::new(format!("config.headers: {name:?} {why}"));
            let parsed = HeaderName::try_from(name).map_err(|_| refused("is no header's name"))?;
            if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
                return Err(refused("belongs to the transport: remove it"));
            }
            let mut value =
                HeaderValue::try_from(value).map_err(|_| refused("has a value that no header can have"))?;
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        Ok(headers)
    }

    /// Whether a setting is used that only applies to a server with a `url`.
    pub(crate) fn is_for_http(&self) -> bool {
        !self.headers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(json: serde_json::Value) -> Config {
        serde_json::from_value(json).expect("a config")
    }

    #[test]
    fn unknown_keys_are_refused_with_the_known_ones() {
        let refused = serde_json::from_value::<Config>(json!({"tool": []})).unwrap_err().to_string();
        for word in ["`tool`", "`tools`", "`protocol`", "`headers`"] {
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn revisions_are_named_by_their_dates() {
        assert_eq!(config(json!({})).revision().unwrap(), Revision::Auto);
        let old = config(json!({"protocol": "2025-06-18"})).revision().unwrap();
        assert_eq!(old, Revision::Only(ProtocolVersion::V_2025_06_18));
        let refused = config(json!({"protocol": "2031-01-01"})).revision().unwrap_err();
        assert!(refused.message().contains("2026-07-28"), "{refused}");
    }

    #[test]
    fn headers_of_the_transport_are_its_own_and_values_are_secrets() {
        let good = config(json!({"headers": {"Authorization": "Bearer s3cret"}})).headers().unwrap();
        assert!(!format!("{good:?}").contains("s3cret"), "{good:?}");
        for (name, value) in
            [("Host", "x"), ("mcp-session-id", "x"), ("Accept", "x"), ("a b", "s3cret"), ("x", "s3cret\n")]
        {
            let refused = config(json!({"headers": {name: value}})).headers().unwrap_err();
            assert!(!refused.message().contains("s3cret"), "{refused}");
        }
    }
}
