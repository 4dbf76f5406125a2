//! The question.

use serde_json::{Map, Value, json};

use super::thinking;
use crate::config::Dialect;
use crate::model::{Message, Request, Thoughts, ToolCall};
use crate::wire::{fits, number, schema_in_words, sent_arguments, sent_id, sent_name};

/// What a schema is called in a request. It says nothing, and is demanded.
const SCHEMA_NAME: &str = "answer";

pub(super) fn body(request: &Request, provider: &str, dialect: Dialect) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), Value::Array(messages(request, provider, dialect)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    if let Some(max) = request.max_output_tokens {
        let field = match dialect {
            Dialect::Openai => "max_completion_tokens",
            _ => "max_tokens",
        };
        body.insert(field.to_owned(), json!(max));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), number(temperature));
    }
    if let Some(schema) = &request.answer_schema {
        let format = match dialect {
            // It holds to JSON and to no schema: the words of it stand with the instructions.
            Dialect::Deepseek => json!({ "type": "json_object" }),
            _ => json!({ "type": "json_schema", "json_schema": { "name": SCHEMA_NAME, "schema": schema } }),
        };
        body.insert("response_format".to_owned(), format);
    }
    thinking::ask(&mut body, request.thinking, dialect);
    Value::Object(body)
}

fn messages(request: &Request, provider: &str, dialect: Dialect) -> Vec<Value> {
    let mut messages: Vec<_> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::System { text } => Some(json!({ "role": "system", "content": text })),
            Message::User { text } => Some(json!({ "role": "user", "content": text })),
            Message::Assistant { text, calls, thoughts } => {
                let thoughts = thoughts.as_ref().filter(|thoughts| fits(thoughts, provider, &request.model));
                assistant(text, calls, thoughts, request, dialect)
            }
            Message::Tool { call_id, content, is_error } => {
                // There is no field for it.
                let content = if *is_error { format!("Error: {content}") } else { content.clone() };
                Some(json!({ "role": "tool", "tool_call_id": sent_id(call_id), "content": content }))
            }
        })
        .collect();
    if let (Dialect::Deepseek, Some(schema)) = (dialect, &request.answer_schema) {
        // Behind all other instructions: nothing precedes the first of them.
        let place = messages.iter().take_while(|message| message["role"] == "system").count();
        messages.insert(place, json!({ "role": "system", "content": schema_in_words(schema) }));
    }
    messages
}

fn assistant(
    text: &str,
    calls: &[ToolCall],
    thoughts: Option<&Thoughts>,
    request: &Request,
    dialect: Dialect,
) -> Option<Value> {
    // A message with nothing in it is refused by most.
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), if text.is_empty() { Value::Null } else { json!(text) });
    if !calls.is_empty() {
        let calls = calls.iter().map(|call| {
            json!({ "id": sent_id(&call.id), "type": "function", "function": {
                "name": sent_name(&call.name), "arguments": Value::Object(sent_arguments(call)).to_string(),
            }})
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    if let Some((field, value)) = thinking::back(thoughts, !calls.is_empty(), request.thinking, dialect) {
        message.insert(field.to_owned(), value);
    }
    Some(Value::Object(message))
}
