//! Parts of requests that all formats share.

use serde_json::{Map, Value, json};

use crate::model::{Arguments, Message, Thoughts, ToolCall};

/// The nearest short number: `0.2`, where the exact value of the float would be `0.20000000298023224`.
pub(crate) fn number(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Describes a schema in words, for providers without a field for it.
pub(crate) fn schema_in_words(schema: &Value) -> String {
    format!(
        "Answer with one JSON value that fits this JSON Schema, and with nothing before or after it:\n{schema}"
    )
}

/// Whether thoughts are those of the requested model.
pub(crate) fn fits(thoughts: &Thoughts, provider: &str, model: &str) -> bool {
    thoughts.provider == provider && thoughts.model == model
}

/// A call's arguments as an object: several servers parse what stands in the transcript, and fail at what is
/// none.
pub(crate) fn sent_arguments(call: &ToolCall) -> Map<String, Value> {
    match &call.arguments {
        Arguments::Object(object) => object.clone(),
        Arguments::Unreadable(text) => Map::from_iter([("unreadable_arguments".to_owned(), json!(text))]),
    }
}

/// The text of a result, for formats without a field that says whether it is an error.
pub(crate) fn error_text(content: &str, is_error: bool) -> String {
    if is_error { format!("Error: {content}") } else { content.to_owned() }
}

/// All instructions as one text; `None` if there are none.
pub(crate) fn joined_system(messages: &[Message], more: Option<String>) -> Option<String> {
    let texts = messages.iter().filter_map(|message| match message {
        Message::System { text } if !text.is_empty() => Some(text.clone()),
        _ => None,
    });
    let texts: Vec<_> = texts.chain(more).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The name of the tool whose call has this id.
pub(crate) fn called_name<'m>(messages: &'m [Message], id: &str) -> Option<&'m str> {
    messages.iter().rev().find_map(|message| match message {
        Message::Assistant { calls, .. } => {
            calls.iter().find(|call| call.id == id).map(|call| call.name.as_str())
        }
        _ => None,
    })
}
