use proptest::prelude::*;
use serde_json::json;

use super::*;

fn verdict(schema: &Value, value: &Value) -> String {
    let schema = Schema::parse(&schema.to_string()).expect("an object");
    schema
        .check(value, &Patterns::default(), &mut Budget::default())
        .map_or_else(|error| error.to_string(), |()| String::new())
}

fn assert_each(cases: &[(Value, Value, &str)]) {
    for (schema, value, expected) in cases {
        assert_eq!(verdict(schema, value), *expected, "{value} against {schema}");
    }
}

#[test]
fn types() {
    assert_each(&[
        (json!({"type": "integer"}), json!(5.0), ""),
        (json!({"type": "integer"}), json!(5.5), "must be of type integer"),
        (json!({"type": ["integer", "null"]}), json!(null), ""),
        (json!({"type": ["integer", "null"]}), json!("x"), "must be of type integer or null"),
        (json!({"type": []}), json!("x"), ""),
        (json!({"type": "uuid"}), json!("x"), ""),
        (json!({"type": 7}), json!("x"), ""),
        (json!({"type": "string"}), json!(["x"]), "must be of type string"),
        (json!({"type": "boolean"}), json!(true), ""),
    ]);
}

#[test]
fn choices() {
    assert_each(&[
        (json!({"const": 1}), json!(1.0), ""),
        (json!({"const": {"a": 1}}), json!({"a": 2}), "must be {\"a\":1}"),
        (json!({"enum": [1, "b", null]}), json!("b"), ""),
        (json!({"enum": [1, "b", null]}), json!("c"), "must be one of 1, \"b\", null"),
        (json!({"enum": [1,2,3,4,5,6,7,8,9]}), json!(10), "must be one of 1, 2, 3, 4, 5, 6, 7, 8, …"),
        (json!({"enum": "no list"}), json!("c"), ""),
    ]);
}

#[test]
fn ranges() {
    assert_each(&[
        (json!({"minimum": 1, "maximum": 3}), json!(1), ""),
        (json!({"minimum": 1, "maximum": 3}), json!(3), ""),
        (json!({"minimum": 1}), json!(0.5), "must be at least 1"),
        (json!({"maximum": 3}), json!(3.5), "must be at most 3"),
        (json!({"exclusiveMinimum": 0}), json!(0), "must be greater than 0"),
        (json!({"exclusiveMaximum": 1}), json!(1), "must be less than 1"),
        (json!({"minimum": "1"}), json!(0), ""),
        (json!({"minimum": 10}), json!("text"), ""),
    ]);
}

#[test]
fn texts() {
    assert_each(&[
        (json!({"minLength": 2, "maxLength": 3}), json!("äöü"), ""),
        (json!({"minLength": 2}), json!("ä"), "must have at least 2 characters"),
        (json!({"maxLength": 2}), json!("äöü"), "must have at most 2 characters"),
        (json!({"maxLength": -1}), json!("äöü"), ""),
        (json!({"pattern": "^[a-z]+$"}), json!("abc"), ""),
        (json!({"pattern": "b"}), json!("abc"), ""),
        (json!({"pattern": "^[a-z]+$"}), json!("a1"), "must match the pattern \"^[a-z]+$\""),
        // Neither look-ahead nor nonsense is a usable pattern.
        (json!({"pattern": "(?=x)"}), json!("a1"), ""),
        (json!({"pattern": "["}), json!("a1"), ""),
    ]);
}

#[test]
fn nested_values_are_checked_and_named() {
    let schema = json!({
        "type": "object",
        "required": ["tags"],
        "properties": {
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            "size": {"properties": {"width": {"minimum": 1}}},
        },
    });
    assert_each(&[
        (schema.clone(), json!({"tags": ["a", "b"], "other": 1}), ""),
        (schema.clone(), json!({}), "must have a field \"tags\""),
        (schema.clone(), json!({"tags": ["a", "long"]}), "at tags.1: must have at most 3 characters"),
        (schema.clone(), json!({"tags": [], "size": {"width": 0}}), "at size.width: must be at least 1"),
    ]);
}

#[test]
fn unknown_keywords_are_ignored() {
    let schema =
        json!({"format": "uri", "anyOf": [false], "$ref": "#/nowhere", "additionalProperties": false});
    assert_eq!(verdict(&schema, &json!({"a": 1})), "");
}

#[test]
fn work_is_bounded() {
    // A million pairs to compare: the budget ends it, and what was not looked at counts as valid.
    let choices: Vec<Value> = (0..1000).map(Value::from).collect();
    let items: Vec<Value> = (0..100_000).map(|_| json!("no")).collect();
    let schema = json!({"items": {"enum": choices}});
    assert!(verdict(&schema, &Value::from(items)).starts_with("at 0: must be one of"));
    let mut late = vec![json!(999); 100_000];
    late.push(json!("no"));
    assert_eq!(verdict(&schema, &Value::from(late)), "");

    let mut late = vec![json!("text"); MAX_STEPS];
    late.push(json!(1));
    assert_eq!(verdict(&json!({"items": {"type": "string"}}), &Value::from(late)), "");

    let mut budget = Budget::default();
    let schema = Schema::parse(r#"{"items": {"pattern": "^a+$"}}"#).unwrap();
    let long = json!(["a".repeat(60_000), "b".repeat(60_000), "b"]);
    let verdict = schema.check(&long, &Patterns::default(), &mut budget);
    let error = verdict.expect_err("the third does not match");
    assert_eq!(error.to_string(), "at 2: must match the pattern \"^a+$\"");
}

#[test]
fn a_name_with_a_colon_is_a_step_of_the_path_like_any_other() {
    let schema = json!({"properties": {"a: b": {"properties": {"c": {"type": "integer"}}}}});
    assert_eq!(verdict(&schema, &json!({"a: b": {"c": "x"}})), "at a: b.c: must be of type integer");
}

#[test]
fn what_is_nested_too_deeply_is_not_looked_into() {
    let nested = |levels: usize| {
        let mut schema = json!({"type": "integer"});
        let mut value = json!("no integer");
        for _ in 0..levels {
            schema = json!({"items": schema});
            value = json!([value]);
        }
        verdict(&schema, &value)
    };
    assert!(nested(MAX_DEPTH).ends_with("must be of type integer"));
    assert_eq!(nested(MAX_DEPTH + 1), "");
}

#[test]
fn patterns_are_compiled_once_and_few_are_kept() {
    let patterns = Patterns::default();
    let first = patterns.get("^a$").unwrap();
    assert!(Arc::ptr_eq(&first, &patterns.get("^a$").unwrap()));
    for i in 0..1000 {
        patterns.get(&format!("^{i}$"));
    }
    assert!(patterns.0.lock().len() <= MAX_PATTERNS);
    assert!(patterns.get(&"a".repeat(MAX_PATTERN_BYTES + 1)).is_none());
    // Small as text, large as a program: too large for us, though not for the regex crate.
    assert!(patterns.get("a{5000}").is_none());
}

/// Any JSON, with the keywords of schemas among its keys.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        prop::sample::select(vec![
            "type",
            "enum",
            "const",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "minLength",
            "maxLength",
            "pattern",
            "items",
            "required",
            "properties",
        ])
        .prop_map(str::to_owned),
        "[a-c]",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(|a|b|string|integer|object|array|[a-z]\\*|\\(|.{0,8})".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    // Promises: GUARD-32
    #[test]
    fn any_json_against_any_json_ends_in_a_bounded_verdict(schema in any_json(), value in any_json()) {
        if let Some(schema) = Schema::parse(&schema.to_string()) {
            let verdict = schema.check(&value, &Patterns::default(), &mut Budget::default());
            prop_assert!(verdict.is_ok() || verdict.unwrap_err().to_string().len() < 4000);
        }
    }
}
