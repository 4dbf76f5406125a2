//! The JSON Schema of a tool's arguments, assembled from an action's declared parameters.
//!
//! The supervisor has sanitized the texts, but a plugin still determines their content. This only ensures
//! that each is a valid schema in its place, and that none makes a client fetch a URL.

use serde_json::{Map, Value, json};
use talon_proto::plugin::{Action, Parameter};

/// Keywords that would change the base of a fragment, and so the meaning of its references.
const IDENTITIES: [&str; 4] = ["$schema", "$id", "$anchor", "$dynamicAnchor"];
/// Keywords whose values are data, not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The schema of all arguments.
#[must_use]
pub fn of_arguments(action: &Action) -> Map<String, Value> {
    let mut properties = Map::new();
    for parameter in &action.parameters {
        properties.insert(parameter.name.clone(), of_parameter(parameter));
    }
    let required: Vec<&str> =
        action.parameters.iter().filter(|p| p.required).map(|p| p.name.as_str()).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(action.takes_further_arguments));
    schema
}

/// The schema of the structured answer, if it is an object's, which every revision of MCP supports.
#[must_use]
pub fn of_answer(action: &Action) -> Option<Map<String, Value>> {
    let schema = rebased(&action.output_schema, "")?;
    (schema.get("type").and_then(Value::as_str) == Some("object")).then_some(schema)
}

fn of_parameter(parameter: &Parameter) -> Value {
    let mut schema = rebased(&parameter.schema, &pointer_to(&parameter.name)).unwrap_or_default();
    let says_what = ["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not"];
    if !says_what.iter().any(|keyword| schema.contains_key(*keyword)) {
        schema.insert("type".to_owned(), json!(json_type(&parameter.r#type)));
    }
    if !schema.contains_key("description") && !parameter.description.is_empty() {
        schema.insert("description".to_owned(), json!(parameter.description));
    }
    Value::Object(schema)
}

/// The JSON Schema type for a plugin's type; unknown types travel as strings.
fn json_type(name: &str) -> &'static str {
    ["integer", "number", "boolean", "array", "object"]
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("string")
}

/// The JSON pointer of a parameter's schema in the assembled one.
fn pointer_to(name: &str) -> String {
    format!("/properties/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Parses a text as a schema at this place; `None` if it is invalid or not self-contained.
fn rebased(text: &str, place: &str) -> Option<Map<String, Value>> {
    let Ok(Value::Object(mut schema)) = serde_json::from_str(text) else { return None };
    rebase(&mut schema, place, true).then_some(schema)
}

/// Rewrites a schema's references for its place. False if it refers to something outside of itself, which
/// clients must not fetch.
fn rebase(schema: &mut Map<String, Value>, place: &str, is_schema: bool) -> bool {
    if is_schema {
        schema.retain(|keyword, _| !IDENTITIES.contains(&keyword.as_str()));
    }
    schema.iter_mut().all(|(keyword, value)| match value {
        Value::String(to) if is_schema && matches!(keyword.as_str(), "$ref" | "$dynamicRef") => {
            match to.strip_prefix('#') {
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                    *to = format!("#{place}{pointer}");
                    true
                }
                _ => false,
            }
        }
        _ if is_schema && DATA.contains(&keyword.as_str()) => true,
        Value::Object(inner) => {
            // Below these keywords the keys are names, and their values are schemas.
            let names = is_schema
                && matches!(
                    keyword.as_str(),
                    "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
                );
            rebase(inner, place, !names)
        }
        Value::Array(items) => items.iter_mut().all(|item| match item {
            Value::Object(inner) => rebase(inner, place, true),
            _ => true,
        }),
        _ => true,
    })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
