use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ToolArgs, decode};
use crate::schema::fields;

fn read<A: ToolArgs>(args: &[(&str, &str)]) -> Result<A, String> {
    let kinds = fields::<A>().expect("a struct").into_iter().map(|f| (f.parameter.name, f.kind)).collect();
    let args = args.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    decode(args, None, &kinds).map_err(|error| error.to_string())
}

fn read_json<A: ToolArgs>(json: &Value) -> Result<A, String> {
    let kinds = fields::<A>().expect("a struct").into_iter().map(|f| (f.parameter.name, f.kind)).collect();
    let json = talon_arguments::Arguments::parse(&json.to_string()).expect("an object");
    decode(json.texts(), Some(&json), &kinds).map_err(|error| error.to_string())
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Fast,
    VerySlow,
    Custom { level: u8 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Meters(u32);

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Many {
    name: String,
    count: u8,
    offset: Option<i64>,
    ratio: Option<f32>,
    #[serde(default)]
    loud: bool,
    #[serde(default)]
    tags: Vec<String>,
    place: Option<Point>,
    mode: Option<Mode>,
    height: Option<Meters>,
    pair: Option<(u8, u8)>,
    letter: Option<char>,
    labels: Option<HashMap<String, u8>>,
}

// Promises: SDK-3
#[test]
fn every_kind_is_read_from_its_text() {
    let many: Many = read(&[
        ("name", "42"),
        ("count", "7"),
        ("offset", "-3"),
        ("ratio", "0.5"),
        ("loud", "true"),
        ("tags", r#"["a","b"]"#),
        ("place", r#"{"x":1,"y":2.5}"#),
        ("mode", "very_slow"),
        ("height", "12"),
        ("pair", "[1,2]"),
        ("letter", "ä"),
        ("labels", r#"{"k":1}"#),
    ])
    .expect("all good");
    assert_eq!(many.name, "42", "a string stays a string, also when it looks like a number");
    assert_eq!((many.count, many.offset, many.ratio, many.loud), (7, Some(-3), Some(0.5), true));
    assert_eq!(many.tags, ["a", "b"]);
    assert_eq!(many.place, Some(Point { x: 1.0, y: 2.5 }));
    assert_eq!((many.mode, many.height), (Some(Mode::VerySlow), Some(Meters(12))));
    assert_eq!((many.pair, many.letter), (Some((1, 2)), Some('ä')));
    assert_eq!(many.labels, Some(HashMap::from([("k".to_owned(), 1)])));
}

#[test]
fn what_is_optional_may_be_left_out_or_null() {
    let many: Many = read(&[("name", "n"), ("count", "1"), ("offset", "null")]).expect("good");
    assert_eq!((many.offset, many.place, many.loud), (None, None, false));
    #[derive(Deserialize, JsonSchema)]
    struct Optional {
        text: Option<String>,
    }
    let optional: Optional = read(&[("text", "null")]).expect("good");
    assert_eq!(optional.text.as_deref(), Some("null"), "a string may be that word");
}

#[test]
fn models_write_numbers_and_booleans_their_own_way() {
    let many: Many =
        read(&[("name", ""), ("count", " 3.0 "), ("loud", "True"), ("offset", "+4")]).expect("good");
    assert_eq!((many.count, many.loud, many.offset), (3, true, Some(4)));
}

#[test]
fn a_variant_with_fields_is_json() {
    let many: Many =
        read(&[("name", ""), ("count", "1"), ("mode", r#"{"custom":{"level":3}}"#)]).expect("good");
    assert_eq!(many.mode, Some(Mode::Custom { level: 3 }));
}

// Promises: SDK-3
#[test]
fn a_complaint_names_the_argument_and_what_was_expected() {
    let base = [("name", "n"), ("count", "1")];
    for (name, text, says) in [
        ("count", "many", "argument `count`: expected an integer from 0 to 255, got \"many\""),
        ("count", "256", "expected an integer from 0 to 255, got \"256\""),
        ("count", "-1", "expected an integer from 0 to 255"),
        ("count", "1.5", "expected an integer from 0 to 255"),
        ("ratio", "NaN", "argument `ratio`: expected a number, got \"NaN\""),
        ("loud", "yes", "argument `loud`: expected true or false, got \"yes\""),
        ("tags", "a,b", "argument `tags`: expected a JSON array"),
        (
            "tags",
            "[1]",
            "argument `tags`: invalid type: integer `1`, expected a string at line 1 column 3, got \"[1]\"",
        ),
        ("tags", "{}", "argument `tags`: expected a JSON array"),
        ("tags", "[] []", "argument `tags`: expected a JSON array"),
        ("place", "{\"x\":1}", "argument `place`: missing field `y`"),
        ("place", "[", "argument `place`: expected a JSON object"),
        ("place", "{\"x\":", "argument `place`: expected a JSON object"),
        ("mode", "medium", "argument `mode`: expected one of fast, very_slow, custom, got \"medium\""),
        ("letter", "ab", "argument `letter`: expected one character"),
        ("pair", "[1]", "argument `pair`: invalid length 1, expected a tuple of size 2"),
        ("pair", "1", "argument `pair`: expected a JSON array of 2"),
    ] {
        let mut args = base.to_vec();
        args.retain(|(known, _)| *known != name);
        args.push((name, text));
        let said = read::<Many>(&args).expect_err("refused");
        assert!(said.contains(says), "expected {says:?} in {said:?}");
    }
}

// Promises: SDK-3
#[test]
fn a_missing_argument_is_named() {
    assert_eq!(read::<Many>(&[("name", "n")]).expect_err("refused"), "argument `count` is missing");
}

#[test]
fn a_huge_wrong_value_is_not_repeated_whole() {
    let huge = "x".repeat(100_000);
    let said = read::<Many>(&[("name", ""), ("count", &huge)]).expect_err("refused");
    assert!(said.len() < 300, "{} bytes", said.len());
    let said = read::<Many>(&[("name", ""), ("count", "1"), ("mode", &huge)]).expect_err("refused");
    assert!(said.len() < 1000, "{} bytes", said.len());
}

#[test]
fn flattened_fields_are_read_by_their_described_kind() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Page {
        size: u32,
        title: String,
    }
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Outer {
        #[serde(flatten)]
        page: Page,
    }
    let outer: Outer = read(&[("size", "10"), ("title", "123")]).expect("good");
    assert_eq!(outer.page, Page { size: 10, title: "123".to_owned() });
}

#[test]
fn anything_is_json_or_else_a_string() {
    #[derive(Deserialize, JsonSchema)]
    struct Anything {
        value: Value,
    }
    for (text, value) in
        [("12", json!(12)), ("{\"a\":[1]}", json!({"a": [1]})), ("plain {", json!("plain {"))]
    {
        assert_eq!(read::<Anything>(&[("value", text)]).expect("good").value, value);
    }
}

#[test]
fn no_arguments_are_fine_for_unit() {
    read::<()>(&[]).expect("unit");
    let kinds = BTreeMap::new();
    decode::<()>(BTreeMap::new(), None, &kinds).expect("unit");
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Whole(i64),
    Yes(bool),
    Word(String),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Loose {
    either: Either,
    any: Value,
    large: Option<i128>,
    word: Option<String>,
}

// Promises: SDK-24
#[test]
fn types_of_json_stay() {
    let read = read_json::<Loose>;
    let word = |word: &str| Either::Word(word.to_owned());
    for (json, either, any) in [
        (json!({"either": "7", "any": "true"}), word("7"), json!("true")),
        (json!({"either": 7, "any": true}), Either::Whole(7), json!(true)),
        (json!({"either": "true", "any": "null"}), word("true"), json!("null")),
        (json!({"either": true, "any": null}), Either::Yes(true), Value::Null),
        (json!({"either": "1.10", "any": {"a": ["1"]}}), word("1.10"), json!({"a": ["1"]})),
    ] {
        let found = read(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!((found.either, found.any), (either, any), "{json}");
    }
    let large = talon_arguments::Arguments::parse(
        r#"{"either": 1, "any": 1, "large": 123456789012345678901234567890, "word": null}"#,
    )
    .unwrap();
    let kinds = fields::<Loose>().unwrap().into_iter().map(|f| (f.parameter.name, f.kind)).collect();
    let found: Loose = decode(BTreeMap::new(), Some(&large), &kinds).unwrap();
    assert_eq!((found.large, found.word), (Some(123_456_789_012_345_678_901_234_567_890), None));
    let word = read(&json!({"either": 1, "any": 1, "word": "null"})).unwrap().word;
    assert_eq!(word.as_deref(), Some("null"));
}
