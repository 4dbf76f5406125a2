//! The promises of the crate, on arbitrary text and on text grown from tokens and evasions.

mod common;

use std::borrow::Cow;

use common::grow::{arbitrary, grown};
use common::oracle::{check, ends_spelling, fuzz_join, fuzz_json, fuzz_one, same_shape, survivors};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;
use talon_sanitize::{FamilyCounts, Sanitizer};

fn clean(text: &str) -> String {
    Sanitizer::default().text(text, &mut FamilyCounts::default()).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Properties 1, 2, 6, 7 and 9 (its length): see [`check`].
    // Promises: GUARD-15, GUARD-16
    #[test]
    fn text_comes_out_safe_settled_and_complete(text in arbitrary()) {
        check(&text);
    }

    /// Property 10: no panic on any bytes.
    // Promises: BAD-17
    #[test]
    fn any_bytes_do(data in vec(any::<u8>(), 0..200)) {
        fuzz_one(&data);
        fuzz_json(&data);
        fuzz_join(&data);
    }

    /// Property 3: every prefix of the output at a character boundary is safe.
    // Promises: GUARD-17
    #[test]
    fn every_prefix_is_safe(text in grown()) {
        let out = clean(&text);
        for (end, _) in out.char_indices() {
            prop_assert!(survivors(&out[..end]).is_empty(), "{:?} of {out:?}", &out[..end]);
        }
    }

    /// Property 3, of the cuts that the guard makes.
    // Promises: GUARD-8
    #[test]
    fn a_safe_cut_leaves_clean_text(text in grown(), max in 0usize..120) {
        let sanitizer = Sanitizer::default();
        let out = clean(&text);
        let cut = sanitizer.safe_cut(&out, max);
        prop_assert!(cut <= max.min(out.len()));
        prop_assert!(cut == out.len() || sanitizer.is_clean(&out[..cut]), "{:?} of {out:?}", &out[..cut]);
    }

    /// Property 4: two outputs concatenated are safe, also the strings of JSON in front of a text.
    // Promises: GUARD-17
    #[test]
    fn two_outputs_together_are_safe(one in grown(), two in grown()) {
        let (one, two) = (clean(&one), clean(&two));
        prop_assert!(ends_spelling(&one) || survivors(&format!("{one}{two}")).is_empty(), "{one:?} and {two:?}");
        prop_assert!(ends_spelling(&one) || survivors(&format!("{one}\n{two}")).is_empty(), "{one:?} and {two:?}");
        let json = serde_json::to_string(&[&one, &two]).expect("strings are JSON");
        if let Some(json) = Sanitizer::default().json(&json, &mut FamilyCounts::default()) {
            prop_assert!(survivors(&format!("{one}\n\n{json}\n{two}")).is_empty(), "{one:?}, {json}, {two:?}");
        }
    }

    /// Property 6: text without shapes, invisibles or controls is byte-identical.
    // Promises: GUARD-18
    #[test]
    fn text_without_openers_is_not_touched(text in "[a-zA-Z0-9 .,;!?()éßжж字あ한\n-]{0,80}") {
        let sanitizer = Sanitizer::default();
        prop_assert!(matches!(sanitizer.text(&text, &mut FamilyCounts::default()), Cow::Borrowed(same) if same == text));
    }

    /// Property 8: JSON in, isomorphic JSON out.
    // Promises: GUARD-19
    #[test]
    fn json_keeps_its_shape(value in json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.expect("a value of strings and numbers");
        let sanitizer = Sanitizer::default();
        let Some(out) = sanitizer.json(&text, &mut FamilyCounts::default()) else {
            // Only keys that would fall together are refused.
            prop_assert!(text.contains("U+") || text.contains('·') || !text.is_ascii() || text.contains('\\'), "{text}");
            return Ok(());
        };
        let after: Value = serde_json::from_str(&out).expect("still JSON");
        prop_assert!(same_shape(&value, &after), "{text} became {out}");
        // The properties of a schema keep their names, which the patterns take for a call's.
        let renamed = without_schemas(&after);
        let judged = if renamed == after { out.to_string() } else { renamed.to_string() };
        prop_assert!(survivors(&judged).is_empty(), "{:?} in {out}", survivors(&judged));
        prop_assert_eq!(sanitizer.json(&out, &mut FamilyCounts::default()), Some(Cow::Borrowed(&*out)));
        strings(&after, &mut |string| {
            let inside = format!("x{string}x");
            assert!(survivors(string).is_empty(), "{inside:?}");
        });
    }
}

/// Property 8, at its edges: keys that are the same twice or would become so, and the limits.
#[test]
fn json_that_cannot_keep_its_shape_is_refused() {
    let json =
        |text: &str| Sanitizer::default().json(text, &mut FamilyCounts::default()).map(Cow::into_owned);
    for refused in [
        "{\"a\":1,\"a\":2}",
        "{\"a\":{\"\\u0062\":1,\"b\":2}}",
        // Both keys come out as `<·think>`.
        "{\"<think>\":1,\"<·think>\":2}",
        "{\"x\\u200b\":1,\"x(U+200B)\":2}",
    ] {
        assert_eq!(json(refused), None, "{refused}");
    }
    let deep = |levels: usize| "[".repeat(levels) + "\"<think>\"" + &"]".repeat(levels);
    assert!(json(&deep(talon_sanitize::MAX_JSON_DEPTH)).is_some_and(|out| out.contains("<·think>")));
    assert_eq!(json(&deep(talon_sanitize::MAX_JSON_DEPTH + 1)), None);
    let large = |size: usize| format!("\"{}\"", "x".repeat(size - 2));
    assert!(json(&large(talon_sanitize::MAX_JSON_BYTES)).is_some());
    assert_eq!(json(&large(talon_sanitize::MAX_JSON_BYTES + 1)), None);
}

/// The value with other names for what is described by a schema.
fn without_schemas(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_schemas).collect(),
        Value::Object(members) => members
            .iter()
            .enumerate()
            .map(|(at, (key, value))| {
                let name = if is_schema(value) { format!("property {at}") } else { key.clone() };
                (name, without_schemas(value))
            })
            .collect(),
        _ => value.clone(),
    }
}

fn is_schema(value: &Value) -> bool {
    const SAYS_WHAT: [&str; 9] =
        ["type", "$ref", "properties", "items", "enum", "const", "oneOf", "anyOf", "allOf"];
    const BESIDE: [&str; 6] = ["title", "description", "default", "required", "format", "pattern"];
    let says_what = |key: &String| SAYS_WHAT.contains(&key.as_str());
    let known = |key: &String| says_what(key) || BESIDE.contains(&key.as_str());
    value.as_object().is_some_and(|members| members.keys().all(known) && members.keys().any(says_what))
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        grown().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            btree_map(key(), inner, 0..5).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        grown(),
        prop::sample::select(&["type", "name", "tool_calls", "function", "arguments"][..])
            .prop_map(str::to_owned),
    ]
}

fn strings(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(string) => each(string),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(entries) => entries.iter().for_each(|(key, item)| {
            each(key);
            strings(item, each);
        }),
        _ => {}
    }
}
