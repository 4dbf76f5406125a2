use serde_json::json;

use super::*;

fn of(schema: Value) -> (Value, Vec<String>, bool) {
    let Properties { named, required, further } = Properties::of(schema.as_object().unwrap(), &schema);
    (Value::Object(named), required, further)
}

// Promises: MCP-48
#[test]
fn what_branches_name_may_be_set() {
    let schema = json!({
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "size": {"type": "integer"}, "n": {"type": "number"}},
             "required": ["size", "n"]},
            {"$ref": "#/$defs/B"},
        ],
        "allOf": [
            {"properties": {"where": {"type": "string"}}, "required": ["where"]},
            {"required": ["kind"]},
            true,
        ],
        "then": {"properties": {"late": {}}},
        "$defs": {"B": {"properties": {"size": {"type": "string"}}, "required": ["size"]}},
    });
    let (named, required, further) = of(schema);
    assert_eq!(
        named,
        json!({
            "kind": {"type": "string"}, "where": {"type": "string"}, "n": {"type": "number"}, "late": {},
            "size": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        })
    );
    assert_eq!(required, ["kind", "where", "kind", "size"]);
    assert!(!further);
}

#[test]
fn a_branch_of_an_object_that_is_closed_adds_nothing() {
    let (named, _, further) = of(json!({
        "properties": {"a": {}}, "additionalProperties": false, "anyOf": [{"properties": {"b": {}}}]
    }));
    assert_eq!((named, further), (json!({"a": {}}), false));
}

#[test]
fn what_cannot_be_followed_may_be_anything() {
    let mut deep = json!({"properties": {"b": {}}});
    for _ in 0..2 * MAX_DEPTH {
        deep = json!({ "anyOf": [deep] });
    }
    deep["properties"] = json!({"a": {}});
    for schema in [
        deep,
        json!({"properties": {"a": {}}, "allOf": [{"$ref": "https://example.org/x"}]}),
        json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
        json!({"properties": {"a": {}}, "patternProperties": {"^x": {}}}),
    ] {
        let (named, _, further) = of(schema.clone());
        assert_eq!((named, further), (json!({"a": {}}), true), "{schema}");
    }
}
