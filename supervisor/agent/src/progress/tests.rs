use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::tool_result::Provenance;

fn print(name: &str, arguments: Value, said: &str) -> Fingerprint {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let call =
        ToolCall { id: "any".to_owned(), name: name.to_owned(), arguments: Arguments::Object(arguments) };
    let result = ToolResult {
        outcome: CallOutcome::Succeeded,
        block: format!("nonce {said}"),
        output: said.to_owned(),
        provenance: Provenance::default(),
    };
    Fingerprint::of_call(&call, &result)
}

#[test]
fn stable_json_is_the_same_in_whatever_order_it_was_written() {
    let one: Value = serde_json::from_str(r#"{"b": [1, {"z": 1, "a": null}], "a": "x"}"#).expect("JSON");
    let two: Value = serde_json::from_str(r#"{"a":"x","b":[1,{"a":null,"z":1}]}"#).expect("JSON");
    assert_eq!(stable(&one), stable(&two));
    assert_eq!(stable(&one), r#"{"a":"x","b":[1,{"a":null,"z":1}]}"#);
}

#[test]
fn a_fingerprint_tells_name_arguments_and_result_apart() {
    let base = print("a", json!({ "q": "1" }), "x");
    assert_eq!(base, print("a", json!({ "q": "1" }), "x"));
    for other in [
        print("b", json!({ "q": "1" }), "x"),
        print("a", json!({ "q": 1 }), "x"),
        print("a", json!({ "q": "1" }), "y"),
        print("a", json!({ "q": "1", "r": null }), "x"),
    ] {
        assert_ne!(base, other);
    }
}

#[test]
fn no_text_passes_for_the_beginning_of_the_next() {
    let texts = |name: &str, arguments: &str, said: &str| {
        let arguments = Arguments::Unreadable(arguments.to_owned());
        let call = ToolCall { id: String::new(), name: name.to_owned(), arguments };
        let result = ToolResult {
            outcome: CallOutcome::Failed,
            block: String::new(),
            output: said.to_owned(),
            provenance: Provenance::default(),
        };
        Fingerprint::of_call(&call, &result)
    };
    assert_ne!(texts("ab", "c", "d"), texts("a", "bc", "d"));
    assert_ne!(texts("a", "b", "cd"), texts("a", "bc", "d"));
    let object =
        ToolCall { id: String::new(), name: "a".to_owned(), arguments: Arguments::Object(Map::new()) };
    let result = ToolResult {
        outcome: CallOutcome::Failed,
        block: String::new(),
        output: "d".to_owned(),
        provenance: Provenance::default(),
    };
    assert_ne!(texts("a", "{}", "d"), Fingerprint::of_call(&object, &result));
}

#[test]
fn going_in_a_circle_is_seen_and_getting_on_is_not() {
    let named = |names: &str| -> Vec<Fingerprint> {
        names.chars().map(|name| print(&name.to_string(), json!({}), "x")).collect()
    };
    for (history, times) in [
        ("", 0),
        ("a", 1),
        ("ab", 1),
        ("aab", 1),
        ("baa", 2),
        ("aaa", 3),
        ("abab", 2),
        ("xababab", 3),
        ("abcabcabc", 3),
        ("abcdabcd", 1),
        ("aabaab", 2),
    ] {
        assert_eq!(repeats(&named(history)), times, "{history}");
    }
}

proptest! {
    #[test]
    fn the_order_of_calls_that_run_at_once_makes_no_difference(
        names in prop::collection::vec("[a-c]{1,2}", 1..6), seed in 0usize..6,
    ) {
        let batch: Vec<_> = names
            .iter()
            .map(|name| (
                ToolCall { id: name.clone(), name: name.clone(), arguments: Arguments::Object(Map::new()) },
                ToolResult { outcome: CallOutcome::Succeeded, block: String::new(), output: name.clone(), provenance: Provenance::default() },
            ))
            .collect();
        let mut turned = batch.clone();
        turned.rotate_left(seed % names.len());
        let of = |batch: &[(ToolCall, ToolResult)]| Fingerprint::of_batch(batch.iter().map(|(c, r)| (c, r)));
        prop_assert_eq!(of(&batch), of(&turned));
    }
}
