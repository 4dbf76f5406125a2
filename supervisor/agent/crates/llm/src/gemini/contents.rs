//! The transcript of a question.

use serde_json::{Value, json};

use super::version::demands_signatures;
use crate::model::{ImageKind, Message, Request, Thoughts, ToolCall};
use crate::remote::split_extras;
use crate::wire::{ImagePart, called_name, fits, image_parts, sent_arguments, sent_id, sent_name};

/// The field of a signature, which has to come back in the same place.
pub(super) const SIGNATURE: &str = "thoughtSignature";
/// What the documents name for a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn contents(request: &Request, provider: &str) -> Vec<Value> {
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, parts) = match message {
            Message::System { .. } => continue,
            Message::User { text } if text.is_empty() => continue,
            Message::User { text } => ("user", vec![json!({ "text": text })]),
            Message::Images { introduction, images } => {
                let parts = image_parts(introduction, images, request, |kind| kind != ImageKind::Gif);
                ("user", parts.into_iter().map(image_part).collect())
            }
            Message::Assistant { text, calls, thoughts } => {
                let thoughts = thoughts.as_ref().filter(|thoughts| fits(thoughts, provider, &request.model));
                ("model", model_parts(text, calls, thoughts, &request.model))
            }
            Message::Tool { call_id, content, is_error } => {
                let name = called_name(&request.messages, call_id).unwrap_or_default();
                let field = if *is_error { "error" } else { "result" };
                let response = json!({ "functionResponse": {
                    "id": sent_id(call_id), "name": sent_name(name), "response": { field: content },
                }});
                ("user", vec![response])
            }
        };
        match turns.last_mut() {
            // The roles alternate, and all results of one answer are one message.
            Some((last, existing)) if *last == role => existing.extend(parts),
            _ if parts.is_empty() => {}
            _ => turns.push((role, parts)),
        }
    }
    turns.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

fn image_part(part: ImagePart) -> Value {
    match part {
        ImagePart::Text(text) => json!({ "text": text }),
        ImagePart::Image { media_type, base64 } => {
            json!({ "inlineData": { "mimeType": media_type, "data": base64 } })
        }
    }
}

fn model_parts(text: &str, calls: &[ToolCall], thoughts: Option<&Thoughts>, model: &str) -> Vec<Value> {
    let (of_text, of_calls) = thoughts.map(|thoughts| split_extras(&thoughts.data)).unwrap_or_default();
    let mut parts = Vec::new();
    if !text.is_empty() {
        let mut part = json!({ "text": text });
        if let Some(signature) = of_text.and_then(|data| data.get(SIGNATURE)) {
            part[SIGNATURE] = signature.clone();
        }
        parts.push(part);
    }
    for (place, call) in calls.iter().enumerate() {
        let mut part = json!({ "functionCall": {
            "id": sent_id(&call.id), "name": sent_name(&call.name), "args": sent_arguments(call),
        }});
        match of_calls.get(place).and_then(|fields| fields.get(SIGNATURE)) {
            Some(signature) => part[SIGNATURE] = signature.clone(),
            // Of calls that were made together, the first has it.
            None if place == 0 && demands_signatures(model) => part[SIGNATURE] = json!(NO_SIGNATURE),
            None => {}
        }
        parts.push(part);
    }
    parts
}
