//! The transcript of a question.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::quirks::{CallIds, Quirks};
use super::thinking;
use crate::model::{Image, Message, Request, Thoughts, ToolCall};
use crate::remote::split_extras;
use crate::wire::{
    ImagePart, data_url, error_text, fits, image_parts, nine_characters, schema_in_words, sent_arguments,
    sent_id, sent_name,
};

/// What the model says between a result and a message, where a server demands that.
const BETWEEN: &str = "OK.";

pub(super) fn messages(request: &Request, provider: &str, quirks: &Quirks) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let sent = match message {
            Message::System { text } => Some(json!({ "role": "system", "content": text })),
            Message::User { text } => Some(json!({ "role": "user", "content": text })),
            Message::Images { introduction, images } => {
                let message =
                    json!({ "role": "user", "content": images_content(introduction, images, request) });
                match messages.last_mut() {
                    // A person's images belong to what they say.
                    Some(before) if introduction.is_empty() && before["role"] == "user" => {
                        join(before, &message);
                        None
                    }
                    _ => Some(message),
                }
            }
            Message::Assistant { text, calls, thoughts } => {
                let thoughts = thoughts.as_ref().filter(|thoughts| fits(thoughts, provider, &request.model));
                assistant(text, calls, thoughts, request, quirks)
            }
            Message::Tool { call_id, content, is_error } => Some(json!({
                "role": "tool", "tool_call_id": id(call_id, quirks), "content": error_text(content, *is_error),
            })),
        };
        messages.extend(sent);
    }
    if let (false, Some(schema)) = (quirks.enforces_schema, &request.answer_schema) {
        // Behind all other instructions: nothing precedes the first of them.
        let place = messages.iter().take_while(|message| message["role"] == "system").count();
        messages.insert(place, json!({ "role": "system", "content": schema_in_words(schema) }));
    }
    if quirks.joins_messages {
        messages = joined(messages);
    }
    if quirks.answers_results {
        messages = with_answered_results(messages);
    }
    messages
}

fn id<'i>(id: &'i str, quirks: &Quirks) -> Cow<'i, str> {
    match quirks.ids {
        CallIds::Usual => sent_id(id),
        CallIds::NineCharacters => nine_characters(id),
    }
}

fn assistant(
    text: &str,
    calls: &[ToolCall],
    thoughts: Option<&Thoughts>,
    request: &Request,
    quirks: &Quirks,
) -> Option<Value> {
    // A message with nothing in it is refused by most.
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let (thoughts, extras) = thoughts.map(|thoughts| split_extras(&thoughts.data)).unwrap_or_default();
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    let content = if text.is_empty() && !quirks.empty_text { Value::Null } else { json!(text) };
    message.insert("content".to_owned(), content);
    if !calls.is_empty() {
        let calls = calls.iter().enumerate().map(|(place, call)| {
            let mut sent = json!({ "id": id(&call.id, quirks), "type": "function", "function": {
                "name": sent_name(&call.name), "arguments": Value::Object(sent_arguments(call)).to_string(),
            }});
            for (field, value) in extras.get(place).and_then(Value::as_object).into_iter().flatten() {
                sent[field.as_str()] = value.clone();
            }
            sent
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    if let Some((field, value)) =
        thinking::back(thoughts, !calls.is_empty(), request.thinking, quirks.thoughts)
    {
        message.insert(field.to_owned(), value);
    }
    Some(Value::Object(message))
}

/// Joins all instructions into the first message, and messages of one role that follow each other; results stay
/// apart, and so do answers with calls or thoughts.
fn joined(messages: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        let is_system = message["role"] == "system";
        let before = if is_system { kept.first_mut() } else { kept.last_mut() };
        match before {
            Some(before) if is_plain(&message) && is_plain(before) && before["role"] == message["role"] => {
                join(before, &message);
            }
            _ if is_system => kept.insert(0, message),
            _ => kept.push(message),
        }
    }
    kept
}

/// Whether a message is a role, and a text or parts.
fn is_plain(message: &Value) -> bool {
    let has_content = message["content"].is_string() || message["content"].is_array();
    has_content && message.as_object().is_some_and(|fields| fields.len() == 2)
}

/// Adds the content of a message to that of one before it.
fn join(before: &mut Value, message: &Value) {
    let (first, second) = (&mut before["content"], &message["content"]);
    if let (Value::String(first), Value::String(second)) = (&mut *first, second) {
        first.push_str("\n\n");
        first.push_str(second);
        return;
    }
    *first = parts(first).into_iter().chain(parts(second)).collect();
}

/// A content as parts.
fn parts(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts.clone(),
        text => vec![json!({ "type": "text", "text": text })],
    }
}

/// Images with what is said before them; one text where no image is shown, since servers without vision take no
/// parts.
fn images_content(introduction: &str, images: &[Image], request: &Request) -> Value {
    let parts = image_parts(introduction, images, request, |_| true);
    if parts.iter().all(|part| matches!(part, ImagePart::Text(_))) {
        let texts = parts.into_iter().filter_map(|part| match part {
            ImagePart::Text(text) => Some(text),
            ImagePart::Image { .. } => None,
        });
        return json!(texts.collect::<Vec<_>>().join("\n\n"));
    }
    let each = parts.into_iter().map(|part| match part {
        ImagePart::Text(text) => json!({ "type": "text", "text": text }),
        ImagePart::Image { media_type, base64 } => {
            json!({ "type": "image_url", "image_url": { "url": data_url(media_type, &base64) } })
        }
    });
    each.collect()
}

fn with_answered_results(messages: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        if message["role"] == "user" && kept.last().is_some_and(|before| before["role"] == "tool") {
            kept.push(json!({ "role": "assistant", "content": BETWEEN }));
        }
        kept.push(message);
    }
    kept
}
