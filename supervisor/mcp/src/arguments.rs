//! Converts a call's arguments from JSON to the strings that plugins get.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use serde_json::Value;

/// A string is passed as it is, everything else as its JSON text. `null` counts as an omitted argument:
/// models write it for optional ones, and a plugin would get the word "null".
pub(crate) fn on_wire(arguments: Option<JsonObject>) -> BTreeMap<String, String> {
    let given = arguments.unwrap_or_default().into_iter();
    given
        .filter_map(|(name, value)| match value {
            Value::Null => None,
            Value::String(text) => Some((name, text)),
            other => Some((name, other.to_string())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_stay_and_all_else_is_json_text() {
        let Value::Object(given) = json!({
            "text": "a \"b\"", "whole": 3, "part": 1.50, "yes": true, "none": null, "list": [1, "x"], "map": { "k": null },
        }) else {
            unreachable!()
        };
        let texts = on_wire(Some(given));
        let expected = [
            ("text", "a \"b\""),
            ("whole", "3"),
            ("part", "1.5"),
            ("yes", "true"),
            ("list", r#"[1,"x"]"#),
            ("map", r#"{"k":null}"#),
        ];
        assert_eq!(texts, expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
        assert!(on_wire(None).is_empty());
    }
}
