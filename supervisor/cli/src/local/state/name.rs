//! Validates names of plugins, and formats keys and counts for messages.

use talon_plugin_config::PluginName;
use talon_sanitize::{Raw, Sanitized};

use crate::exit;
use crate::failure::Failure;

/// Bytes of a key in a message.
const MAX_SHOWN_KEY_BYTES: usize = 100;

/// Validates a plugin's name. The plugin need not exist: the state of a removed one is still stored.
pub(super) fn plugin(text: &str) -> Result<String, Failure> {
    PluginName::new(text)
        .map(|name| name.as_str().to_owned())
        .map_err(|error| Failure::usage(error.to_string()))
}

/// A key in a message.
pub(super) fn key(text: &str) -> Sanitized {
    Raw::from(text).line_within(MAX_SHOWN_KEY_BYTES)
}

/// The error for a key that does not exist.
pub(super) fn no_such_key(plugin: &str, text: &str) -> Failure {
    let key = key(text);
    let text = format!("{plugin} has no key {key}: `talon state list {plugin}` lists those it has");
    Failure::new(exit::REFUSED, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_refused_in_a_sentence_of_bounded_length() {
        for bad in ["../x", "A", "a\0b", "\u{1b}[2J", "", &"a".repeat(10_000)] {
            let failure = plugin(bad).unwrap_err();
            assert_eq!(failure.code(), crate::exit::USAGE);
            assert!(failure.to_string().len() < 400, "{failure}");
        }
        assert_eq!(plugin("gone-since").unwrap(), "gone-since");
        assert!(key(&"k".repeat(10_000)).len() < 200);
    }
}
