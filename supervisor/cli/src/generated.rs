//! Output that this program generates for other programs: scripts, configuration, schemas.
//!
//! It bypasses the sanitizer, because a program reads it and a marker would break it. That is safe because it
//! is generated here from the operator's files and from the program itself. Text of a plugin can only enter
//! if it was sanitized piece by piece, and it is escaped for the output format.

use std::fmt::Write as _;

use clap_complete::Shell;
use serde_json::Value;
use talon_conformance::{Report, page, report};
use talon_sanitize::Sanitizer;
use talon_supervisor::config::{self, Loaded};

use crate::failure::Failure;

pub(crate) enum GeneratedText<'a> {
    /// A shell's completion script.
    Completions(&'a clap::Command, Shell),
    /// What a shell evaluates to report its commands.
    ShellInit(String),
    /// The effective configuration as YAML.
    Config(&'a Loaded),
    /// The effective configuration as JSON.
    ConfigJson(&'a Loaded),
    /// The documentation of all keys.
    Reference,
    /// The JSON schema of the configuration.
    Schema,
    /// The file of a built-in profile.
    Profile(&'static str),
    /// The documentation of the conformance checks.
    Checks,
    /// A conformance report for build servers.
    JUnit(&'a Report),
}

impl GeneratedText<'_> {
    pub(crate) fn text(&self) -> Result<String, Failure> {
        Ok(match self {
            Self::Completions(command, shell) => {
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut (*command).clone(), "talon", &mut script);
                String::from_utf8_lossy(&script).into_owned()
            }
            Self::ShellInit(script) => script.clone(),
            Self::Config(loaded) => loaded.show_yaml(),
            Self::ConfigJson(loaded) => escaped(&loaded.show_json()),
            Self::Reference => {
                let mut text = String::new();
                config::write_reference(&mut text).map_err(|error| Failure::failed(error.to_string()))?;
                text
            }
            Self::Schema => escaped(&config::json_schema()),
            Self::Profile(text) => (*text).to_owned(),
            Self::Checks => page::markdown(),
            Self::JUnit(report) => report::junit(report),
        })
    }
}

/// JSON in which invisible characters and those that act on a terminal are written as JSON escapes, so that
/// the strings keep their exact values.
fn escaped(value: &Value) -> String {
    let sanitizer = Sanitizer::default();
    let text = format!("{value:#}");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_seen = c.is_ascii() || sanitizer.is_clean(c.encode_utf8(&mut [0; 4]));
        // In pretty-printed JSON, line breaks only occur between values.
        if is_seen && (!c.is_control() || c == '\n') {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_keeps_its_value() {
        let value =
            json!({ "a\u{202e}": "\u{1b}[2J\u{9b}m\u{e0041}\u{7f} Grüße 日本", "b": ["<|im_start|>"] });
        let text = escaped(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.contains("Grüße 日本") && text.contains("<|im_start|>"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{e0041}']), "{text:?}");
    }
}
