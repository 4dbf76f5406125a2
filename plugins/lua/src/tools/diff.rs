//! What a call changed, line by line: `-` before, `+` after.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use talon_lua_engine::KvValue;

/// The difference of two messages.
pub(super) fn message(before: &str, after: &str) -> String {
    let mut text = String::new();
    if before != after {
        for (sign, message) in [('-', before), ('+', after)] {
            for line in message.lines() {
                let _ = writeln!(text, "{sign} message: {line}");
            }
        }
    }
    text
}

/// What metadata has that it had not.
pub(super) fn metadata(before: &BTreeMap<String, String>, set: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (key, value) in set {
        if let Some(old) = before.get(key) {
            let _ = writeln!(text, "- metadata.{key}: {old}");
        }
        let _ = writeln!(text, "+ metadata.{key}: {value}");
    }
    text
}

/// The difference of key-values.
pub(super) fn values(before: &BTreeMap<String, KvValue>, after: &BTreeMap<String, KvValue>) -> String {
    let shown = |value: &KvValue| serde_json::to_string(value).unwrap_or_default();
    let mut text = String::new();
    for (key, value) in before.iter().filter(|(key, value)| after.get(*key) != Some(*value)) {
        let _ = writeln!(text, "- kv {key}: {}", shown(value));
    }
    for (key, value) in after.iter().filter(|(key, value)| before.get(*key) != Some(*value)) {
        let _ = writeln!(text, "+ kv {key}: {}", shown(value));
    }
    text
}
