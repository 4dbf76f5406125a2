#![expect(dead_code, reason = "these types are described, never filled")]

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::*;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Fast,
    Slow,
}

#[derive(Deserialize, JsonSchema)]
enum Told {
    /// Quick.
    Fast,
    /// Careful.
    Slow,
}

#[derive(Deserialize, JsonSchema)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Text(String),
}

#[derive(Deserialize, JsonSchema)]
struct Many {
    /// Who it is.
    name: String,
    count: u8,
    ratio: Option<f64>,
    #[serde(default)]
    loud: bool,
    tags: Vec<String>,
    place: Option<Point>,
    mode: Option<Mode>,
    told: Told,
    tree: Tree,
    either: Either,
    anything: Value,
}

fn many() -> HashMap<String, Field> {
    let fields = fields::<Many>().expect("a struct");
    assert_eq!(fields[0].parameter.name, "name", "the order of declaration is kept");
    fields.into_iter().map(|field| (field.parameter.name.clone(), field)).collect()
}

// Promises: SDK-2
#[test]
fn a_plain_type_says_it_all_in_one_word() {
    let fields = many();
    let name = &fields["name"].parameter;
    assert_eq!((name.r#type.as_str(), name.required, name.schema.as_str()), ("string", true, ""));
    assert_eq!(name.description, "Who it is.");
}

// Promises: SDK-2
#[test]
fn bounds_travel_as_a_schema() {
    let count = &many()["count"].parameter;
    assert_eq!(count.r#type, "integer");
    let schema: Value = serde_json::from_str(&count.schema).expect("JSON");
    assert_eq!((&schema["minimum"], &schema["maximum"]), (&0.into(), &255.into()));
}

#[test]
fn options_and_defaults_are_not_required_and_never_null() {
    let fields = many();
    for name in ["ratio", "loud", "place", "mode"] {
        let parameter = &fields[name].parameter;
        assert!(!parameter.required, "{name}");
        assert!(!parameter.schema.contains("null"), "{name}: {}", parameter.schema);
    }
    assert_eq!(fields["ratio"].kind, Kind::Number);
    assert_eq!(fields["loud"].kind, Kind::Boolean);
    assert_eq!(fields["place"].kind, Kind::Object);
    assert!(fields["place"].parameter.schema.contains("\"x\""));
}

// Promises: SDK-2
#[test]
fn enums_of_words_are_strings() {
    let fields = many();
    assert_eq!(fields["mode"].kind, Kind::String);
    assert!(fields["mode"].parameter.schema.contains("slow"));
    assert_eq!(fields["told"].kind, Kind::String);
    assert!(fields["told"].parameter.schema.contains("Careful."));
}

#[test]
fn described_choices_are_listed_as_well() {
    #[derive(Deserialize, JsonSchema)]
    enum Some {
        Plain,
        /// With words.
        Described,
    }
    #[derive(Deserialize, JsonSchema)]
    enum Open {
        /// With words.
        Word,
        /// With a level.
        Level(u8),
    }
    #[derive(Deserialize, JsonSchema)]
    struct Choices {
        told: Option<Told>,
        some: Vec<Some>,
        open: Open,
    }
    let fields = fields::<Choices>().expect("a struct");
    let schema =
        |index: usize| -> Value { serde_json::from_str(&fields[index].parameter.schema).expect("JSON") };
    assert_eq!(schema(0)["enum"], serde_json::json!(["Fast", "Slow"]));
    assert_eq!(schema(1)["items"]["enum"], serde_json::json!(["Plain", "Described"]));
    assert!(schema(2).get("enum").is_none(), "a variant with data is no constant: {}", schema(2));
}

#[test]
fn a_recursive_type_carries_its_definition() {
    let tree = many().remove("tree").expect("there").parameter;
    assert_eq!(tree.r#type, "object");
    let schema: Value = serde_json::from_str(&tree.schema).expect("JSON");
    let reference =
        schema.pointer("/properties/children/items/$ref").and_then(Value::as_str).expect("recursive");
    assert!(schema.pointer(&reference[1..]).is_some(), "{reference} leads nowhere in {schema}");
}

#[test]
fn mixtures_are_any() {
    let fields = many();
    assert_eq!(fields["either"].kind, Kind::Mixed);
    assert_eq!(fields["either"].parameter.r#type, "any");
    assert!(fields["either"].parameter.schema.contains("anyOf"));
    assert_eq!(fields["anything"].parameter.r#type, "any");
}

#[test]
fn nothing_to_fill_is_no_parameters() {
    #[derive(Deserialize, JsonSchema)]
    struct Empty {}
    assert!(fields::<()>().expect("unit").is_empty());
    assert!(fields::<Empty>().expect("empty").is_empty());
}

#[test]
fn what_cannot_be_filled_by_name_is_refused() {
    #[derive(Deserialize, JsonSchema)]
    struct Tuple(String, u8);
    for refused in [
        fields::<String>(),
        fields::<Tuple>(),
        fields::<Told>(),
        fields::<HashMap<String, String>>(),
        fields::<Value>(),
    ] {
        let why = refused.expect_err("refused").to_string();
        assert!(why.contains("must be a struct with named fields"), "{why}");
    }
}
