//! Parts of requests that all formats share.

use serde_json::{Map, Value, json};

use crate::model::{Arguments, Thoughts, ToolCall};

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
