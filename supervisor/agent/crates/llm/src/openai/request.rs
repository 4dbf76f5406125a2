//! The question.

use serde_json::{Map, Value, json};

use super::messages::messages;
use super::quirks::{Quirks, thinks};
use super::thinking;
use crate::model::{Request, ToolChoice};
use crate::wire::number;

/// What a schema is called in a request. It says nothing, and is demanded.
const SCHEMA_NAME: &str = "answer";

pub(super) fn body(request: &Request, provider: &str, quirks: &Quirks) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), Value::Array(messages(request, provider, quirks)));
    body.insert("stream".to_owned(), json!(true));
    if quirks.asks_for_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        body.insert("tools".to_owned(), tools.collect());
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!("none")),
            ToolChoice::Required => Some(json!("required")),
            ToolChoice::Tool(name) => Some(json!({ "type": "function", "function": { "name": name } })),
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    }
    if let Some(max) = request.max_output_tokens {
        body.insert(quirks.max_tokens.to_owned(), json!(max));
    }
    if !(quirks.fixed_sampling && thinks(&request.model)) {
        for (field, value) in [("temperature", request.temperature), ("top_p", request.top_p)] {
            if let Some(value) = value {
                body.insert(field.to_owned(), number(value));
            }
        }
        if !request.told_stops().is_empty() {
            body.insert("stop".to_owned(), json!(request.told_stops()));
        }
        if let (Some(field), Some(seed)) = (quirks.seed, request.seed) {
            body.insert(field.to_owned(), json!(seed));
        }
    }
    if let Some(schema) = &request.answer_schema {
        let format = if quirks.enforces_schema {
            json!({ "type": "json_schema", "json_schema": { "name": SCHEMA_NAME, "schema": schema } })
        } else {
            // The words of the schema stand with the instructions.
            json!({ "type": "json_object" })
        };
        body.insert("response_format".to_owned(), format);
    }
    thinking::ask(&mut body, request.thinking, quirks.thinking);
    Value::Object(body)
}
