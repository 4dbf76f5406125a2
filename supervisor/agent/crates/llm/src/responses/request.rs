//! The question.

use serde_json::{Map, Value, json};

use super::input::input;
use crate::model::{Request, ToolChoice};
use crate::openai::{level, thinks};
use crate::wire::{joined_system, number};

/// What a schema is called in a request. It says nothing, and is demanded.
const SCHEMA_NAME: &str = "answer";

pub(super) fn body(request: &Request, provider: &str) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("stream".to_owned(), json!(true));
    body.insert("store".to_owned(), json!(false));
    if let Some(text) = joined_system(&request.messages, None) {
        body.insert("instructions".to_owned(), json!(text));
    }
    body.insert("input".to_owned(), Value::Array(input(request, provider)));
    if !request.tools.is_empty() {
        // Strict mode takes fewer schemas than are in use.
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false,
            })
        });
        body.insert("tools".to_owned(), tools.collect());
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!("none")),
            ToolChoice::Required => Some(json!("required")),
            ToolChoice::Tool(name) => Some(json!({ "type": "function", "name": name })),
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    }
    if let Some(max) = request.max_output_tokens {
        body.insert("max_output_tokens".to_owned(), json!(max));
    }
    if thinks(&request.model) {
        // Models that do not think refuse to encrypt thoughts.
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    } else {
        for (field, value) in [("temperature", request.temperature), ("top_p", request.top_p)] {
            if let Some(value) = value {
                body.insert(field.to_owned(), number(value));
            }
        }
    }
    if let Some(level) = level(request.thinking) {
        body.insert("reasoning".to_owned(), json!({ "effort": level }));
    }
    if let Some(schema) = &request.answer_schema {
        let format = json!({ "type": "json_schema", "name": SCHEMA_NAME, "schema": schema, "strict": false });
        body.insert("text".to_owned(), json!({ "format": format }));
    }
    Value::Object(body)
}
