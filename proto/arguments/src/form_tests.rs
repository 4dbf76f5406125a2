use serde_json::json;

use super::*;

fn form(properties: Value) -> Result<Form, FormError> {
    Form::parse(&json!({"type": "object", "properties": properties, "required": ["a"]}).to_string())
}

#[test]
fn a_form_has_texts_numbers_booleans_and_choices() {
    let form = form(json!({
        "a": {"type": "string", "title": "A", "description": "One."},
        "b": {"type": "integer", "default": 3},
        "c": {"type": "boolean", "default": "no"},
        "d": {"type": "string", "enum": ["x", "y"], "enumNames": ["X", "Y"]},
        "e": {"type": "string", "oneOf": [{"const": "x", "title": "the x"}]},
        "f": {"type": "array", "items": {"enum": ["p", "q"]}},
        "g": {"type": "number"},
    }))
    .unwrap();
    let kinds: Vec<_> = form.fields.iter().map(|field| field.kind.expected()).collect();
    assert_eq!(
        kinds,
        [
            "a text",
            "an integer",
            "true or false",
            "one of x, y",
            "one of x",
            "a list of some of p, q",
            "a number"
        ]
    );
    assert_eq!((form.fields[0].title.as_str(), form.fields[0].required), ("A", true));
    assert_eq!((form.fields[1].default.clone(), form.fields[2].default.clone()), (Some(json!(3)), None));
    for (answer, wrong) in [
        (json!({"a": "1"}), None),
        (json!({"a": "1", "b": 3.0, "c": true, "d": "x", "e": "x", "f": ["q"], "g": 1.5}), None),
        (json!({}), Some("\"a\" is missing")),
        (json!({"a": 1}), Some("\"a\" has to be a text")),
        (json!({"a": "1", "d": "z"}), Some("\"d\" has to be one of x, y")),
        (json!({"a": "1", "f": ["z"]}), Some("\"f\" has to be a list of some of p, q")),
        (json!({"a": "1", "h": 1}), Some("\"h\" is not asked for")),
        (json!([]), Some("the answer has to be one JSON object of at most 65536 bytes")),
    ] {
        let found = form.check(&answer.to_string()).err().map(|error| error.to_string());
        assert_eq!(found.as_deref(), wrong, "{answer}");
    }
    assert!(form.check(&json!({"a": "x".repeat(MAX_ANSWER_BYTES)}).to_string()).is_err());
}

#[test]
fn what_is_nested_composed_or_large_is_no_form() {
    let many: Map<String, Value> =
        (0..=MAX_FIELDS).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
    for properties in [
        json!({"a": {"type": "object"}}),
        json!({"a": {"type": "array", "items": {"type": "string"}}}),
        json!({"a": {"$ref": "#/x"}}),
        json!({"a": {"type": "string", "enum": []}}),
        json!({"a": {"type": "string", "enum": ["x".repeat(200)]}}),
        json!({"a": {"type": "integer", "enum": ["1"]}}),
        json!({"a b": {"type": "string"}}),
        json!({"": {"type": "string"}}),
        json!({"a": true}),
        json!([]),
        many.into(),
    ] {
        assert!(form(properties.clone()).is_err(), "{properties}");
    }
    for schema in ["", "[]", "{\"type\": \"array\"}", "{\"anyOf\": []}"] {
        assert!(Form::parse(schema).is_err(), "{schema}");
    }
    assert_eq!(Form::parse("{}").unwrap(), Form::default(), "a question for yes or no");
    let long = json!({"type": "object", "description": "x".repeat(MAX_FORM_BYTES)}).to_string();
    assert_eq!(Form::parse(&long), Err(FormError::Large(long.len())));
}

// Promises: MCP-51
#[test]
fn a_form_asks_for_no_secret() {
    for properties in [json!({"password": {"type": "string"}}), json!({"pin": {"type": "integer"}})] {
        let refused = form(properties.clone());
        assert!(matches!(refused, Err(FormError::Secret(_))), "{properties}: {refused:?}");
    }
    // A choice or a yes is none.
    form(json!({"save_password": {"type": "boolean"}, "token": {"enum": ["old", "new"]}})).unwrap();
}
