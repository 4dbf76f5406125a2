//! The descriptions are complete, and `sdk/gateway-ts` is what they say.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::events::ServerEvent;
use crate::events::client_message::ClientMessage;

fn described() -> Value {
    openapi(super::super::described().into_openapi())
}

fn schemas() -> Map<String, Value> {
    described()["components"]["schemas"].as_object().unwrap().clone()
}

/// Every `$ref` below a value.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(target) if key == "$ref" => drop(found.insert(target.clone())),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(array) => array.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

// Promises: GW-118
#[test]
fn descriptions_name_every_event_and_nothing_that_is_not_there() {
    let asyncapi = asyncapi(&described());
    let messages: BTreeSet<_> =
        asyncapi["components"]["messages"].as_object().unwrap().keys().cloned().collect();
    let client = ClientMessage::TYPES.into_iter().map(|kind| format!("client.{kind}"));
    let wanted: BTreeSet<_> = ServerEvent::TYPES.into_iter().map(str::to_owned).chain(client).collect();
    assert_eq!(messages, wanted);
    for document in [asyncapi, described()] {
        let mut targets = BTreeSet::new();
        references(&document, &mut targets);
        for target in targets {
            // A JSON pointer, but for names with dots, which need no escape.
            let there = document.pointer(target.trim_start_matches('#'));
            assert!(there.is_some(), "{target} is not there");
        }
    }
}

// Promises: GW-119
#[test]
fn the_typescript_types_are_those_of_the_gateway() {
    let written = typescript(&schemas());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/gateway-ts/types.ts");
    if std::env::var_os("TALON_REWRITE_DOCS").is_some() {
        std::fs::write(&file, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == written, "sdk/gateway-ts/types.ts is old: run this test with TALON_REWRITE_DOCS=1");
}

/// All schemas as TypeScript.
fn typescript(schemas: &Map<String, Value>) -> String {
    let mut text = "// Generated from the gateway's Rust types by the test the_typescript_types_are_those_of_the_gateway.\n".to_owned();
    let names: BTreeSet<_> = schemas.keys().collect();
    for name in names {
        let schema = &schemas[name];
        comment(&mut text, schema, "");
        let identifier = identifier(name);
        match schema["properties"].as_object() {
            Some(_) if schema.get("allOf").is_none() => {
                writeln!(text, "export interface {identifier} {}", object(schema, "")).unwrap();
            }
            _ => writeln!(text, "export type {identifier} = {};", of(schema, "")).unwrap(),
        }
    }
    text
}

fn comment(text: &mut String, schema: &Value, indent: &str) {
    if let Some(said) = schema["description"].as_str() {
        writeln!(text, "{indent}/** {} */", said.replace('\n', " ").replace("*/", "* /")).unwrap();
    }
}

/// `Page_Session` is no name that people write.
fn identifier(name: &str) -> String {
    name.split('_').collect()
}

fn object(schema: &Value, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let required: BTreeSet<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = "{\n".to_owned();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        comment(&mut text, property, &inner);
        let mark = if required.contains(name.as_str()) { "" } else { "?" };
        writeln!(text, "{inner}{name}{mark}: {};", of(property, &inner)).unwrap();
    }
    text + indent + "}"
}

fn of(schema: &Value, indent: &str) -> String {
    if let Some(target) = schema["$ref"].as_str() {
        return identifier(target.rsplit('/').next().unwrap());
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    for (keyword, between) in [("oneOf", " | "), ("anyOf", " | "), ("allOf", " & ")] {
        if let Some(parts) = schema[keyword].as_array() {
            return parts.iter().map(|part| of(part, indent)).collect::<Vec<_>>().join(between);
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return "unknown".to_owned(),
    };
    let one = |kind: &str| match kind {
        "string" => "string".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "null" => "null".to_owned(),
        "array" => format!("Array<{}>", of(&schema["items"], indent)),
        "object" if schema.get("properties").is_some() => object(schema, indent),
        "object" => match schema.get("additionalProperties") {
            Some(values) => format!("Record<string, {}>", of(values, indent)),
            None => "Record<string, unknown>".to_owned(),
        },
        other => panic!("the type {other} has no TypeScript here"),
    };
    kinds.into_iter().map(one).collect::<Vec<_>>().join(" | ")
}
