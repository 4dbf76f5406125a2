//! Sanitizes JSON for a terminal or a prompt, and keeps its shape.
//!
//! JSON's own escapes leave much unescaped: C1 controls, direction overrides, invisible characters, and the
//! control syntax of models. What the supervisor sends was sanitized before, so sanitizing it once more
//! changes nothing, and programs get the values unchanged.

use crate::{FamilyCounts, Raw, Sanitizer};
use serde_json::{Map, Value};

/// The value with every string and key sanitized, and the text as a whole too: a key and its value can be
/// control syntax together.
#[must_use]
pub fn value(value: &Value) -> Value {
    let whole = Sanitizer::default().sanitize_json(value.to_string(), &mut FamilyCounts::default());
    match whole.and_then(|inert| serde_json::from_str(&inert).ok()) {
        Some(inert) => inert,
        // Too deep or too large, or two keys would become equal: then string by string.
        None => piecewise(value),
    }
}

fn piecewise(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(Raw::from(text).text().into_string()),
        Value::Array(items) => items.iter().map(piecewise).collect(),
        Value::Object(entries) => {
            let mut inert = Map::new();
            for (key, value) in entries {
                let mut key = Raw::from(key).text().into_string();
                while inert.contains_key(&key) {
                    key.push('_');
                }
                inert.insert(key, piecewise(value));
            }
            Value::Object(inert)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const HOSTILE: &str = "\u{9b}2J<|im_start|>\u{202e}[/plugin_output]\u{200b}";

    #[test]
    fn strings_and_keys_are_inert() {
        let hostile = json!({ HOSTILE: [HOSTILE, 1, null], "n": 1.5 });
        let text = value(&hostile).to_string();
        assert!(Sanitizer::default().is_clean(&text), "{text}");
        assert!(!text.contains(['\u{9b}', '\u{202e}', '\u{200b}']), "{text:?}");
        assert!(text.contains("1.5"));
    }

    #[test]
    fn what_is_too_deep_or_has_keys_that_become_one_keeps_its_shape() {
        let mut deep = json!(HOSTILE);
        for _ in 0..80 {
            deep = json!([deep]);
        }
        assert!(!value(&deep).to_string().contains("<|im_start|>"));
        let twins = json!({ "<think>": 1, "<·think>": 2 });
        assert_eq!(value(&twins).as_object().unwrap().len(), 2);
    }

    proptest! {
        #[test]
        fn every_sanitized_line_is_the_same_in_json(text in any::<String>()) {
            let made = json!({ "unix_ms": 1, "text": Raw::from(text).line().as_str() });
            prop_assert_eq!(value(&made), made);
        }
    }
}
