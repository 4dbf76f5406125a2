use proptest::prelude::*;

use super::*;
use crate::MAX_DEPTH;

fn parsed(json: &str) -> Arguments {
    Arguments::parse(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn strings_stay_null_is_left_out_and_the_rest_is_its_json() {
    let given = r#" { "text": "a \"b\"", "whole": 3, "part": 1.50, "yes": true, "none": null,
        "list": [ 1, "x y" ], "map": { "k" : null }, "seven": "7", "big": 123456789012345678901234567890 } "#;
    let arguments = parsed(given);
    let expected = [
        ("text", "a \"b\""),
        ("whole", "3"),
        ("part", "1.50"),
        ("yes", "true"),
        ("list", r#"[1,"x y"]"#),
        ("map", r#"{"k":null}"#),
        ("seven", "7"),
        ("big", "123456789012345678901234567890"),
    ];
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    assert_eq!(arguments.texts(), expected);
    assert_eq!(
        arguments.to_json(),
        r#"{"big":123456789012345678901234567890,"list":[1,"x y"],"map":{"k":null},"none":null,"part":1.50,"seven":"7","text":"a \"b\"","whole":3,"yes":true}"#
    );
    assert_eq!(parsed("{}").to_json(), "{}");
}

#[test]
fn what_is_no_plain_object_is_refused() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let long_key = format!("{{\"{0}\":1,\"{0}\":1}}", "k".repeat(5000));
    for (text, says) in [
        ("", "EOF"),
        ("[1]", "not an object"),
        ("null", "not an object"),
        ("{\"a\":1", "EOF"),
        ("{\"a\":1} x", "trailing"),
        ("{\"a\":1,\"a\":1}", "twice"),
        ("{\"a\":1,\"\\u0061\":2}", "twice"),
        ("{\"a\":[{\"b\":1,\"b\":2}]}", "twice"),
        ("{\"a\":1e999}", "out of range"),
        ("{\"a\":NaN}", "expected"),
        (deep.as_str(), "deeper than 64"),
        (long_key.as_str(), "twice"),
    ] {
        let why = Arguments::parse(text).unwrap_err().to_string();
        assert!(why.contains(says) && why.len() < 500, "{text:.40}: {why}");
    }
    let deepest = format!("{{\"a\":{}{}}}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
    assert!(Arguments::parse(&deepest).is_ok());
}

#[test]
fn both_forms_have_to_be_the_same_call() {
    let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    let arguments = parsed(r#"{"path": "/tmp/x", "count": 7, "none": null}"#);
    assert_eq!(arguments.agree(&texts(&[("path", "/tmp/x"), ("count", "7")])), Ok(()));
    for (given, name) in [
        (&[("path", "/tmp/y"), ("count", "7")][..], "path"),
        (&[("path", "/tmp/x")], "count"),
        (&[("path", "/tmp/x"), ("count", "7.0")], "count"),
        (&[("path", "/tmp/x"), ("count", "7"), ("none", "null")], "none"),
        (&[("path", "/tmp/x"), ("count", "7"), ("more", "1")], "more"),
    ] {
        assert_eq!(
            arguments.agree(&texts(given)),
            Err(ArgumentsError::Disagree(name.to_owned())),
            "{given:?}"
        );
    }
}

#[test]
fn a_member_is_found_in_its_text_and_set_in_it() {
    let text =
        r#" {"a": {"b": "}{,\"", "arguments": 1}, "arguments" : {"x": 12345678901234567890123} , "z": []}"#;
    assert_eq!(member(text, "arguments"), Some(r#"{"x": 12345678901234567890123}"#));
    assert_eq!(member(text, "z"), Some("[]"));
    assert_eq!((member(text, "b"), member("[1]", "a"), member("", "a")), (None, None, None));
    assert_eq!(member(r#"{"a":1,"a":2}"#, "a"), Some("2"));
    let mut object = "{}".to_owned();
    set_member(&mut object, "a", "1");
    set_member(&mut object, "b \"", "[2]");
    assert_eq!(object, r#"{"a":1,"b \"":[2]}"#);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |float| float.is_finite().then(|| Value::from(float))),
        "\\PC{0,8}|[\"\\\\{}\\[\\],: \n]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_parsed_is_what_was_written(
        fields in prop::collection::btree_map("\\PC{0,6}", any_json(), 0..5),
        pretty in any::<bool>(),
    ) {
        let given = Value::Object(fields.into_iter().collect());
        let text = if pretty { serde_json::to_string_pretty(&given).unwrap() } else { given.to_string() };
        let arguments = Arguments::parse(&text).unwrap();
        let again: Value = serde_json::from_str(&arguments.to_json()).unwrap();
        prop_assert_eq!(&again, &given);
        prop_assert_eq!(arguments.agree(&arguments.texts()), Ok(()));
        prop_assert_eq!(&Arguments::of(given.as_object().unwrap()), &arguments);
        prop_assert_eq!(&Arguments::parse(&arguments.to_json()).unwrap(), &arguments);
        // Every argument that is found alone is the one of the whole.
        for (name, json) in arguments.iter() {
            let found = member(&text, name).map(compact);
            prop_assert_eq!(found.as_deref(), Some(json));
        }
    }

    #[test]
    fn no_text_is_a_panic(text in "[\"{}\\[\\],:\\\\a1 ]{0,30}") {
        let _ = Arguments::parse(&text);
        let _ = member(&text, "a");
        let _ = compact(&text);
    }
}
