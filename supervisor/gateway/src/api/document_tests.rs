//! The descriptions are complete, and `sdk/gateway-ts` is what they say.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use talon_event_bus::EventKind;

use super::*;
use crate::events::ServerEvent;
use crate::events::client_message::{ClientMessage, SessionChange};

fn described() -> Value {
    openapi(super::super::description())
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
    let bus = EventKind::ALL.iter().map(|kind| kind.as_str()).chain(["missed"]);
    let bus = bus.map(|kind| format!("bus.{kind}"));
    let wanted: BTreeSet<_> =
        ServerEvent::TYPES.into_iter().map(str::to_owned).chain(client).chain(bus).collect();
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

// Promises: GW-271
#[test]
fn each_event_of_the_bus_is_described_in_its_channel() {
    let asyncapi = asyncapi(&described());
    let channel = &asyncapi["channels"]["bus"];
    assert_eq!(channel["address"], "/api/bus");
    let listed = channel["messages"].as_object().unwrap();
    let watched = asyncapi["operations"]["watchBus"]["messages"].as_array().unwrap();
    // Every kind, and that events are missing.
    assert_eq!((listed.len(), watched.len()), (EventKind::ALL.len() + 1, EventKind::ALL.len() + 1));
    for name in listed.keys() {
        let message = &asyncapi["components"]["messages"][name];
        assert_eq!(format!("bus.{}", message["name"].as_str().unwrap()), *name);
        let payload = &message["payload"];
        assert_eq!(payload["properties"]["type"]["const"], message["name"]);
        assert!(payload["properties"]["payload"]["$ref"].is_string(), "{payload}");
        let required: BTreeSet<_> =
            payload["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(required, ["payload", "timestamp", "type"].into());
    }
}

// Promises: GW-270
#[test]
fn every_body_below_v1_has_a_type() {
    let document = described();
    let paths = document["paths"].as_object().unwrap();
    let mut seen = BTreeSet::new();
    for (path, operations) in paths.iter().filter(|(path, _)| path.starts_with("/v1/")) {
        for (method, operation) in operations.as_object().unwrap() {
            let is_type = |schema: &Value| {
                let name = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
                let schema = &document["components"]["schemas"][name.unwrap_or_default()];
                ["properties", "oneOf", "allOf"].iter().any(|keyword| schema.get(keyword).is_some())
            };
            let answer = &operation["responses"]["200"]["content"];
            let json = &answer["application/json"]["schema"];
            assert!(is_type(json), "{method} {path} answers {json}");
            if method == "post" {
                let body = &operation["requestBody"]["content"]["application/json"]["schema"];
                assert!(is_type(body), "{method} {path} takes {body}");
            }
            if answer.get("text/event-stream").is_some() {
                let json = event_of(&operation["responses"]["200"]).unwrap();
                assert!(is_type(json), "{method} {path} streams {json}");
            }
            seen.insert(format!("{method} {path}"));
        }
    }
    let wanted = [
        "delete /v1/responses/{id}",
        "get /v1/models",
        "get /v1/models/{model}",
        "get /v1/responses/{id}",
        "post /v1/chat/completions",
        "post /v1/embeddings",
        "post /v1/responses",
    ];
    assert_eq!(seen, wanted.map(str::to_owned).into());
}

// Promises: GW-273
#[test]
fn what_a_session_may_want_is_described_by_its_words() {
    let document = described();
    let body =
        &document["paths"]["/api/sessions/{id}"]["patch"]["requestBody"]["content"]["application/json"];
    let name = body["schema"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let schemas = &document["components"]["schemas"];
    let properties = schemas[&name]["properties"].as_object().unwrap();
    let mut names: Vec<_> = properties.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["labels", "model", "thinkingLevel", "verboseLevel"]);
    let mut targets = BTreeSet::new();
    references(&properties["thinkingLevel"], &mut targets);
    let target = targets.first().unwrap();
    let level = document.pointer(target.trim_start_matches('#')).unwrap();
    assert_eq!(level["enum"], json!(["configured", "off", "low", "medium", "high", ""]));
    let mut shown = BTreeSet::new();
    references(&schemas["SessionConfig"]["properties"]["thinkingLevel"], &mut shown);
    assert_eq!(shown, targets);
    for word in level["enum"].as_array().unwrap() {
        let change: SessionChange = crate::input::read(&json!({"thinkingLevel": word}).to_string()).unwrap();
        let agents = word.as_str().map(|word| word.trim_start_matches("configured"));
        assert_eq!(change.of("s").thinking.as_deref(), agents);
    }
    let refused = crate::input::read::<SessionChange>(r#"{"thinkingLevel": "endless"}"#).unwrap_err();
    assert!(refused.detail().contains("`medium`"), "{}", refused.detail());
}

// Promises: GW-119
#[test]
fn the_typescript_types_are_those_of_the_gateway() {
    let written = typescript(&schemas()) + &typescript_routes(&described());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/gateway-ts/types.ts");
    if std::env::var_os("TALON_REWRITE_DOCS").is_some() {
        std::fs::write(&file, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == written, "sdk/gateway-ts/types.ts is old: run this test with TALON_REWRITE_DOCS=1");
}

// Promises: GW-119
#[test]
fn the_typescript_client_sends_every_type_and_imports_what_there_is() {
    let written = |name: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/gateway-ts").join(name))
            .unwrap()
    };
    let (client, types) = (written("client.ts"), written("types.ts"));
    let payloads = client.split("ClientPayloads {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let sent: BTreeSet<_> =
        payloads.lines().filter_map(|line| Some(line.trim().split_once(": ")?.0.trim_matches('"'))).collect();
    assert_eq!(sent, ClientMessage::TYPES.into_iter().collect());
    let imported = client.split("import type {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    for name in imported.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let is_there =
            ["interface", "type"].iter().any(|word| types.contains(&format!("export {word} {name} ")));
        assert!(is_there, "types.ts has no {name}");
    }
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

/// What each route takes and answers, of those that answer JSON, events or nothing.
fn typescript_routes(document: &Value) -> String {
    let mut text =
        "/** The routes, each with the body that it takes and what it answers. */\nexport interface Routes {\n".to_owned();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            let good = responses.iter().filter(|(status, _)| status.starts_with('2'));
            let answers: BTreeSet<String> = good
                .filter_map(|(status, response)| match &response["content"]["application/json"]["schema"] {
                    Value::Null => (status == "204").then(|| "undefined".to_owned()),
                    schema => Some(of(schema, "  ")),
                })
                .collect();
            let event = event_of(&operation["responses"]["200"]);
            let event = event.map(|json| format!(" event: {};", of(json, "  "))).unwrap_or_default();
            if answers.is_empty() && event.is_empty() {
                continue;
            }
            let body = match &operation["requestBody"]["content"]["application/json"]["schema"] {
                Value::Null => "undefined".to_owned(),
                schema => of(schema, "  "),
            };
            let said = json!({"description": operation["summary"]});
            comment(&mut text, &said, "  ");
            let answer =
                if answers.is_empty() { "never".to_owned() } else { Vec::from_iter(answers).join(" | ") };
            let route = format!("{} {path}", method.to_uppercase());
            writeln!(text, "  \"{route}\": {{ body: {body}; answer: {answer};{event} }};").unwrap();
        }
    }
    text + "}\n"
}

/// The JSON in the events of a stream.
fn event_of(response: &Value) -> Option<&Value> {
    let data = response.pointer("/content/text~1event-stream/schema/properties/data")?;
    data.get("contentSchema").or_else(|| data.pointer("/anyOf/1/contentSchema"))
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
            let parts = parts.iter().map(|part| {
                let is_union = ["oneOf", "anyOf"].iter().any(|keyword| part.get(keyword).is_some());
                let text = of(part, indent);
                if is_union && keyword == "allOf" { format!("({text})") } else { text }
            });
            return parts.collect::<Vec<_>>().join(between);
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
