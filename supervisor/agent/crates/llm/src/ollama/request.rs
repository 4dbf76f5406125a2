//! The question.

use serde_json::{Map, Value, json};

use crate::model::{Image, ImageKind, Message, Request, Thinking, ToolChoice};
use crate::wire::{
    ImagePart, called_name, error_text, image_parts, number, sent_arguments, sent_id, sent_name,
};

pub(super) fn body(request: &Request, num_ctx: Option<u32>) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), Value::Array(messages(request)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("think".to_owned(), think(&request.model, request.thinking));
    // The format has no choice, so what may not be called is not offered, and what has to be is only offered.
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
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
    if let Some(top_p) = request.top_p {
        options.insert("top_p".to_owned(), number(top_p));
    }
    if !request.told_stops().is_empty() {
        options.insert("stop".to_owned(), json!(request.told_stops()));
    }
    if let Some(seed) = request.seed {
        options.insert("seed".to_owned(), json!(seed));
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

fn messages(request: &Request) -> Vec<Value> {
    let messages = &request.messages;
    let mut sent: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        if let Message::Images { introduction, images } = message {
            let with_images = images_message(introduction, images, request);
            match sent.last_mut() {
                // A person's images belong to what they say.
                Some(before) if introduction.is_empty() && before["role"] == "user" => {
                    add_images(before, &with_images);
                }
                _ => sent.push(with_images),
            }
            continue;
        }
        sent.extend(text_message(message, messages));
    }
    sent
}

/// A message whose images stand beside its text.
fn images_message(introduction: &str, images: &[Image], request: &Request) -> Value {
    let (mut texts, mut shown) = (Vec::new(), Vec::new());
    for part in image_parts(introduction, images, request, |kind| kind != ImageKind::Gif) {
        match part {
            ImagePart::Text(text) => texts.push(text),
            ImagePart::Image { base64, .. } => shown.push(base64),
        }
    }
    let mut message = json!({ "role": "user", "content": texts.join("\n\n") });
    if !shown.is_empty() {
        message["images"] = json!(shown);
    }
    message
}

fn add_images(before: &mut Value, with_images: &Value) {
    let text = with_images["content"].as_str().unwrap_or_default();
    if !text.is_empty() {
        let said = before["content"].as_str().unwrap_or_default();
        before["content"] = json!(format!("{said}\n\n{text}"));
    }
    if let Some(images) = with_images.get("images") {
        before["images"] = images.clone();
    }
}

fn text_message(message: &Message, messages: &[Message]) -> Option<Value> {
    match message {
        Message::System { text } => Some(json!({ "role": "system", "content": text })),
        Message::User { text } => Some(json!({ "role": "user", "content": text })),
        Message::Images { .. } => None,
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
            let content = error_text(content, *is_error);
            let mut message = json!({ "role": "tool", "content": content, "tool_call_id": sent_id(call_id) });
            if let Some(name) = called_name(messages, call_id) {
                message["tool_name"] = json!(sent_name(name));
            }
            Some(message)
        }
    }
}
