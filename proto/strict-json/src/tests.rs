use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[test]
fn what_readers_could_read_differently_is_refused_with_its_place() {
    let many: String = (0..40).map(|n| format!("\"k{n}\":1,")).collect();
    for (text, says) in [
        ("", "EOF"),
        ("{\"a\":1", "EOF"),
        ("1 x", "trailing"),
        ("{\"a\":1,\"a\":1}", "the key \"a\" stands there twice at line 1 column 10"),
        ("{\"a\":1,\"\\u0061\":2}", "twice"),
        ("[{\"b\":1,\"c\":[],\"b\":2}]", "the key \"b\""),
        ("1e999", "out of range"),
        ("NaN", "expected"),
        (&format!("{{{many}\"k3\":1}}"), "the key \"k3\""),
        (&format!("{{{many}\"k30\":1}}"), "the key \"k30\""),
        (&format!("{{\"{0}\":1,\"{0}\":1}}", "k".repeat(5000)), "twice"),
    ] {
        let why = check(text).unwrap_err().to_string();
        assert!(why.contains(says) && why.len() < 200, "{text:.40}: {why}");
    }
}

#[test]
fn it_nests_to_the_bound_and_no_deeper() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(check(&nested(MAX_DEPTH)).is_ok());
    assert!(check(&nested(MAX_DEPTH + 1)).unwrap_err().to_string().contains("deeper than 64"));
    let objects = "{\"a\":".repeat(MAX_DEPTH + 1) + "1" + &"}".repeat(MAX_DEPTH + 1);
    assert!(check(&objects).unwrap_err().to_string().contains("deeper than 64"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 100, 30, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..30)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_as_it_is_written_passes(value in any_json()) {
        let (compact, indented) = (format!("{value}"), format!("{value:#}"));
        prop_assert!(check(&compact).is_ok() && check(&indented).is_ok(), "{}", compact);
    }

    #[test]
    fn an_object_passes_if_each_key_stands_there_once(keys in prop::collection::vec("[abc]{0,3}", 0..40)) {
        let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\":0")).collect();
        let unique = keys.iter().collect::<BTreeSet<_>>().len() == keys.len();
        prop_assert_eq!(check(&format!("[{{{}}}]", members.join(","))).is_ok(), unique);
    }

    /// Texts of a small alphabet often are JSON, or nearly.
    #[test]
    fn it_takes_what_a_parser_takes(text in r#"[\[\]{}"ab:,1 ]{0,24}"#) {
        let parses = serde_json::from_str::<Value>(&text).is_ok();
        match check(&text) {
            Ok(()) => prop_assert!(parses),
            Err(error) => prop_assert!(!parses || error.to_string().contains("twice"), "{}", error),
        }
    }
}
