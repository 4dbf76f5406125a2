use super::*;

fn parameter(name: &str, r#type: &str, schema: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        r#type: r#type.to_owned(),
        schema: schema.to_owned(),
        ..Parameter::default()
    }
}

fn property(parameter: Parameter) -> Value {
    let name = parameter.name.clone();
    let schema = of_arguments(&Action { parameters: vec![parameter], ..Action::default() });
    schema["properties"][&name].clone()
}

#[test]
fn parameters_become_the_properties_of_one_closed_object() {
    let text = Parameter { required: true, description: "what".to_owned(), ..parameter("text", "", "") };
    let action = Action { parameters: vec![text, parameter("count", "integer", "")], ..Action::default() };
    let expected = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "description": "what" },
            "count": { "type": "integer" },
        },
        "required": ["text"],
        "additionalProperties": false,
    });
    assert_eq!(Value::Object(of_arguments(&action)), expected);
    let none = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(Value::Object(of_arguments(&Action::default())), none);
}

#[test]
fn a_fragment_is_kept_and_what_it_lacks_is_added() {
    let kept = property(parameter("a", "array", r#"{"items": {"type": "integer"}, "minItems": 1}"#));
    assert_eq!(kept, json!({ "items": { "type": "integer" }, "minItems": 1, "type": "array" }));
    let choice = property(parameter("a", "string", r#"{"enum": ["x", "y"]}"#));
    assert_eq!(choice, json!({ "enum": ["x", "y"] }));
}

#[test]
fn what_is_no_schema_leaves_the_type() {
    for no_schema in ["", "{", "[1]", "true", "\"text\"", "sanitized <·tool_call>"] {
        assert_eq!(property(parameter("a", "number", no_schema)), json!({ "type": "number" }), "{no_schema}");
    }
    assert_eq!(property(parameter("a", "uuid", "")), json!({ "type": "string" }));
}

#[test]
fn references_follow_the_fragment_to_where_it_stands() {
    let fragment = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://plugin.example/x",
        "type": "array",
        "items": { "$ref": "#/$defs/Edit" },
        "$defs": { "Edit": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Edit" } } } },
        "default": [{ "$ref": "data" }],
    });
    let settled = property(parameter("a/b", "array", &fragment.to_string()));
    assert_eq!(settled["items"]["$ref"], "#/properties/a~1b/$defs/Edit");
    assert_eq!(settled["$defs"]["Edit"]["properties"]["next"]["$ref"], "#/properties/a~1b/$defs/Edit");
    assert_eq!(settled["default"][0]["$ref"], "data");
    assert!(settled.get("$schema").is_none() && settled.get("$id").is_none(), "{settled}");
}

#[test]
fn nobody_is_sent_to_fetch_a_schema() {
    for to in ["https://attacker.example/s.json", "file:///etc/passwd", "other.json#/a", "#anchor"] {
        let fragment = json!({ "type": "object", "properties": { "x": { "anyOf": [{ "$ref": to }] } } });
        let settled = property(parameter("a", "object", &fragment.to_string()));
        assert_eq!(settled, json!({ "type": "object" }), "{to}");
    }
}

#[test]
fn a_property_may_be_called_as_a_keyword() {
    let fragment = json!({
        "type": "object",
        "properties": { "$id": { "type": "string" }, "$ref": { "type": "string" }, "default": { "$ref": "#" } },
    });
    let settled = property(parameter("a", "object", &fragment.to_string()));
    assert_eq!(settled["properties"]["$id"]["type"], "string");
    assert_eq!(settled["properties"]["$ref"]["type"], "string");
    assert_eq!(settled["properties"]["default"]["$ref"], "#/properties/a");
}

#[test]
fn only_an_objects_schema_is_promised_of_an_answer() {
    let of = |schema: &str| of_answer(&Action { output_schema: schema.to_owned(), ..Action::default() });
    let whole =
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A" } }, "$defs": { "A": {} } });
    assert_eq!(of(&whole.to_string()).map(Value::Object), Some(whole));
    for none in ["", "{}", r#"{"type": "array"}"#, "[", r#"{"type": "object", "$ref": "http://x/"}"#] {
        assert!(of(none).is_none(), "{none}");
    }
}
