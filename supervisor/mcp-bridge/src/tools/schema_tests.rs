use serde_json::json;

use super::*;

fn of(schema: Value) -> Vec<(String, String, bool, String, String)> {
    let parameters = Parameters::of(&schema);
    let row = |p: Parameter| (p.name, p.r#type, p.required, p.description, p.schema);
    parameters.list.into_iter().map(row).collect()
}

fn row(
    name: &str,
    word: &str,
    required: bool,
    description: &str,
    schema: &str,
) -> (String, String, bool, String, String) {
    (name.into(), word.into(), required, description.into(), schema.into())
}

#[test]
fn each_property_is_a_parameter() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where.", "title": "Path"},
            "depth": {"type": "integer", "minimum": 1, "default": 3},
            "filter": {"$ref": "#/$defs/Filter", "description": "What."},
            "mode": {"enum": ["a", "b"]},
            "mixed": {"type": ["string", "integer"]},
            "optional": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "Opt"},
            "defaulted": {"type": "integer", "default": 5},
            "anything": true,
        },
        "required": ["path", "filter", "defaulted"],
        "$defs": {"Filter": {"type": "object", "properties": {"x": {"type": "number"}}}},
    });
    assert_eq!(
        of(schema),
        [
            row("path", "string", true, "Where.", ""),
            row("depth", "integer", false, "", r#"{"type":"integer","minimum":1,"default":3}"#),
            row(
                "filter",
                "object",
                true,
                "What.",
                r#"{"type":"object","properties":{"x":{"type":"number"}}}"#
            ),
            row("mode", "string", false, "", r#"{"enum":["a","b"]}"#),
            row("mixed", "any", false, "", r#"{"type":["string","integer"]}"#),
            row(
                "optional",
                "string",
                false,
                "Opt",
                r#"{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}"#
            ),
            row("defaulted", "integer", false, "", r#"{"type":"integer","default":5}"#),
            row("anything", "any", false, "", ""),
        ]
    );
}

#[test]
fn a_tool_without_properties_takes_nothing() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "additionalProperties": false}),
        json!({}),
    ] {
        assert_eq!(of(schema.clone()), [], "{schema}");
    }
}

// Promises: MCP-48
#[test]
fn a_schema_that_says_nothing_admits_any_argument() {
    for (schema, further) in [
        (json!({}), true),
        (json!({"type": "object"}), true),
        (json!({"type": "object", "properties": {}}), false),
        (json!({"type": "object", "additionalProperties": false}), false),
        (json!({"type": "object", "properties": {"a": {}}}), false),
        (json!({"type": "object", "properties": {"a": {}}, "additionalProperties": true}), true),
    ] {
        let parameters = Parameters::of(&schema);
        assert_eq!((parameters.further, parameters.whole), (further, false), "{schema}");
    }
}

#[test]
fn what_has_no_properties_that_can_be_named_is_one_argument() {
    let many: serde_json::Map<_, _> = (0..200).map(|i| (format!("p{i}"), json!({}))).collect();
    for schema in [
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object"}]}),
        json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}),
        json!({"type": "array"}),
        json!({"type": "object", "properties": {"two words": {}}}),
        json!({"type": "object", "properties": {"": {}}}),
        json!({"type": "object", "properties": many}),
        json!(true),
        json!("x"),
    ] {
        let parameters = Parameters::of(&schema);
        assert!(parameters.whole, "{schema}");
        let [only] = parameters.list.as_slice() else { panic!("{parameters:?}") };
        assert_eq!((only.name.as_str(), only.r#type.as_str(), only.required), (WHOLE, "object", true));
    }
}

#[test]
fn a_piece_that_cannot_be_kept_takes_anything_and_says_so() {
    let schema = json!({
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/Tree", "description": "A tree."},
            "remote": {"$ref": "https://example.org/x"},
            "large": {"type": "string", "enum": vec!["x".repeat(100); 5000]},
            "fine": {"type": "string"},
        },
        "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}},
    });
    assert!(schema.to_string().len() > 500_000);
    let rows = of(schema);
    assert_eq!(
        rows[0].3,
        "A tree. (Its schema is not shown: it refers to itself. The server checks what it gets.)"
    );
    assert_eq!((rows[0].1.as_str(), rows[0].4.as_str()), ("any", ""));
    assert!(rows[1].3.contains("outside of it"), "{:?}", rows[1]);
    assert!(
        rows[2].3.contains("too large") && rows[2].1 == "string" && rows[2].4.is_empty(),
        "{:?}",
        rows[2]
    );
    assert_eq!(rows[3], row("fine", "string", false, "", ""));
}
