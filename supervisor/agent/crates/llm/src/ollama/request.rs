//! The question.

use serde_json::{Map, Value, json};

use crate::model::{Message, Request, Thinking};
use crate::wire::{number, sent_arguments, sent_id, sent_name};

pub(super) fn body(request: &Request, num_ctx: Option<u32>) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), Value::Array(messages(&request.messages)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("think".to_owned(), think(&request.model, request.thinking));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        body.insert("tools".to_owned(), tools.collect());
    }
    if let Some(schema) = &request.answer_schema {
        body.insert("format".to_owned(), schema.clone());
    }
    let mut options = Map::new();
    if let Some(max) = request.max_output_tokens {
        options.insert("num_predict".to_owned(), json!(max));
    }
    if let Some(temperature) = request.temperature {
        options.insert("temperature".to_owned(), number(temperature));
    }
    if let Some(num_ctx) = num_ctx {
        options.insert("num_ctx".to_owned(), json!(num_ctx));
    }
    if !options.is_empty() {
        body.insert("options".to_owned(), Value::Object(options));
    }
    Value::Object(body)
}

/// gpt-oss has levels and no off; all others have on and off, and refuse a level.
fn think(model: &str, thinking: Thinking) -> Value {
    let has_levels = model.contains("gpt-oss");
    match thinking {
        Thinking::Off if has_levels => json!("low"),
        Thinking::Off => json!(false),
        Thinking::Low if has_levels => json!("low"),
        Thinking::Medium if has_levels => json!("medium"),
        Thinking::High if has_levels => json!("high"),
        Thinking::Low | Thinking::Medium | Thinking::High => json!(true),
    }
}

fn messages(messages: &[Message]) -> Vec<Value> {
    let called = |id: &str| {
        messages.iter().rev().find_map(|message| match message {
            Message::Assistant { calls, .. } => calls.iter().find(|call| call.id == id),
            _ => None,
        })
    };
    let sent = messages.iter().filter_map(|message| match message {
        Message::System { text } => Some(json!({ "role": "system", "content": text })),
        Message::User { text } => Some(json!({ "role": "user", "content": text })),
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            (!text.is_empty()).then(|| json!({ "role": "assistant", "content": text }))
        }
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| {
                json!({ "id": sent_id(&call.id), "function": {
                    "name": sent_name(&call.name), "arguments": sent_arguments(call),
                }})
            });
            Some(json!({ "role": "assistant", "content": text, "tool_calls": calls.collect::<Value>() }))
        }
        Message::Tool { call_id, content, is_error } => {
            let content = if *is_error { format!("Error: {content}") } else { content.clone() };
            let mut message = json!({ "role": "tool", "content": content, "tool_call_id": sent_id(call_id) });
            if let Some(call) = called(call_id) {
                message["tool_name"] = json!(sent_name(&call.name));
            }
            Some(message)
        }
    });
    sent.collect()
}
