//! The transcript of a question, as items.

use serde_json::{Value, json};

use crate::model::{Message, Request, ToolCall};
use crate::wire::{ImagePart, data_url, error_text, fits, image_parts, sent_arguments, sent_id, sent_name};

pub(super) fn input(request: &Request, provider: &str) -> Vec<Value> {
    let mut items = Vec::new();
    for message in &request.messages {
        match message {
            Message::System { .. } => {}
            Message::User { text } => items.push(json!({ "role": "user", "content": text })),
            Message::Images { introduction, images } => {
                let parts = image_parts(introduction, images, request, |_| true);
                let parts = parts.into_iter().map(image_part);
                match items.last_mut() {
                    // A person's images belong to what they say.
                    Some(before) if introduction.is_empty() && before["role"] == "user" => {
                        let text = json!({ "type": "input_text", "text": before["content"] });
                        before["content"] = std::iter::once(text).chain(parts).collect();
                    }
                    _ => items.push(json!({ "role": "user", "content": parts.collect::<Value>() })),
                }
            }
            Message::Assistant { text, calls, thoughts } => {
                let thoughts = thoughts.as_ref().filter(|thoughts| fits(thoughts, provider, &request.model));
                let order = thoughts.and_then(|thoughts| thoughts.data.as_array());
                answer(text, calls, order.map(Vec::as_slice).unwrap_or_default(), &mut items);
            }
            Message::Tool { call_id, content, is_error } => items.push(json!({
                "type": "function_call_output", "call_id": sent_id(call_id),
                "output": error_text(content, *is_error),
            })),
        }
    }
    items
}

fn image_part(part: ImagePart) -> Value {
    match part {
        ImagePart::Text(text) => json!({ "type": "input_text", "text": text }),
        ImagePart::Image { media_type, base64 } => {
            json!({ "type": "input_image", "image_url": data_url(media_type, &base64), "detail": "auto" })
        }
    }
}

/// An answer's items in the order in which they came: a thought has to stand before what it led to.
fn answer(text: &str, calls: &[ToolCall], order: &[Value], items: &mut Vec<Value>) {
    let mut text = Some(text).filter(|text| !text.is_empty());
    let mut calls = calls.iter();
    for item in order {
        match item["type"].as_str() {
            Some("message") => items.extend(text.take().map(said)),
            Some("function_call") => items.extend(calls.next().map(called)),
            _ => items.push(item.clone()),
        }
    }
    items.extend(text.map(said));
    items.extend(calls.map(called));
}

fn said(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

fn called(call: &ToolCall) -> Value {
    json!({
        "type": "function_call", "call_id": sent_id(&call.id), "name": sent_name(&call.name),
        "arguments": Value::Object(sent_arguments(call)).to_string(),
    })
}
