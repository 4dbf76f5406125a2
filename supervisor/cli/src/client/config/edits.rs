//! What the command line asks for, as edits of single keys.

use serde_json::Value;
use talon_config_json::{MergePatchError, edits, message};
use talon_proto::host::ConfigEdit;

use super::key;
use crate::failure::Failure;

/// The edits of `KEY=VALUE` and `--unset KEY`. A value is JSON, and a text if it is none.
///
/// # Errors
/// A [`Failure`] if a key has an empty step, or is there twice, or if a value is `null`, which no key has.
pub(super) fn edits_of_pairs(
    pairs: Vec<(String, String)>,
    unset: Vec<String>,
) -> Result<Vec<ConfigEdit>, Failure> {
    let set = pairs.into_iter().map(|(key, text)| {
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (key, Some(value))
    });
    let mut edits: Vec<ConfigEdit> = Vec::new();
    for (key, value) in set.chain(unset.into_iter().map(|key| (key, None))) {
        let Some(steps) = key::steps(&key) else {
            return Err(Failure::usage(format!(
                "{key:?} is no key: its names are joined by single dots, as in agent.turn.iterations, and one with a dot is quoted, as in a.\"b.c\""
            )));
        };
        if value == Some(Value::Null) {
            return Err(Failure::usage(format!(
                "null is no value of {key:?}: --unset {key} has the configuration file decide, and '\"null\"' is the text"
            )));
        }
        if edits.iter().any(|edit| edit.key == steps) {
            return Err(Failure::usage(format!("the key {key:?} is given twice: give it once")));
        }
        edits.push(ConfigEdit { key: steps, value: value.as_ref().map(message) });
    }
    Ok(edits)
}

/// The edits of a JSON merge patch (RFC 7396). An object is a patch of what is below it, `null` removes, anything else is set.
///
/// # Errors
/// A [`Failure`] if it is no JSON object, or has no key, or an object below a key is empty: such a patch would change nothing there.
pub(super) fn edits_of_merge_patch(text: &str) -> Result<Vec<ConfigEdit>, Failure> {
    let patch: Value = serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("the patch is no JSON: {error}")))?;
    let edits = edits(patch).map_err(|error| {
        Failure::usage(match error {
            MergePatchError::NotAnObject => {
                "the patch is no JSON object: write it as {\"agent\": {\"turn\": {\"iterations\": 12}}}"
                    .to_owned()
            }
            MergePatchError::EmptyObject(key) => format!(
                "{} is {{}}, which changes nothing: name keys below it, or write null to remove it",
                key::text(&key)
            ),
        })
    })?;
    if edits.is_empty() {
        return Err(Failure::usage("the patch changes nothing: it has no key with a value or null"));
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(edits: Vec<ConfigEdit>) -> Vec<(String, Option<Value>)> {
        let one = |edit: ConfigEdit| (edit.key.join("."), edit.value.as_ref().map(talon_config_json::json));
        edits.into_iter().map(one).collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn a_value_is_json_and_a_text_if_it_is_none() {
        let pairs = vec![
            pair("agent.turn.iterations", "36"),
            pair("log.level", "debug"),
            pair("agent.x", "\"36\""),
            pair("agent.y", "[1, true]"),
        ];
        let edits = edits_of_pairs(pairs, vec!["models.default".to_owned()]).unwrap();
        let wanted = [
            ("agent.turn.iterations", Some(json!(36))),
            ("log.level", Some(json!("debug"))),
            ("agent.x", Some(json!("36"))),
            ("agent.y", Some(json!([1, true]))),
            ("models.default", None),
        ];
        assert_eq!(read(edits), wanted.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn a_key_has_steps_and_is_given_once() {
        for wrong in [".a", "a..b", "a.", "."] {
            assert!(edits_of_pairs(vec![pair(wrong, "1")], Vec::new()).is_err(), "{wrong}");
        }
        assert!(edits_of_pairs(vec![pair("a.b", "1")], vec!["a.b".to_owned()]).is_err());
        assert!(edits_of_pairs(vec![pair("a.b", "1")], vec!["a.\"b\"".to_owned()]).is_err());
        let dotted = edits_of_pairs(vec![pair("models.\"gpt-4.1\".price", "1")], Vec::new()).unwrap();
        assert_eq!(dotted[0].key, ["models", "gpt-4.1", "price"]);
    }

    #[test]
    fn null_is_no_value() {
        assert!(edits_of_pairs(vec![pair("a.b", "null")], Vec::new()).is_err());
        assert!(edits_of_pairs(vec![pair("a.b", "\"null\"")], Vec::new()).is_ok());
    }

    #[test]
    fn a_merge_patch_sets_and_removes() {
        let edits = edits_of_merge_patch(r#"{"agent": {"turn": {"iterations": 12}}, "log": null}"#).unwrap();
        let mut edits = read(edits);
        edits.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(edits, [("agent.turn.iterations".to_owned(), Some(json!(12))), ("log".to_owned(), None)]);
        for wrong in ["[1]", "{}", "{\"a\": {}}", "{\"a\": {\"b\": {}}, \"c\": 1}", "{"] {
            assert!(edits_of_merge_patch(wrong).is_err(), "{wrong}");
        }
    }
}
