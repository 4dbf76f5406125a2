//! How each dialect requests thinking, and receives thoughts back.

use serde_json::{Map, Value, json};

use super::quirks::{ThinkingRequest, ThoughtsBack};
use crate::model::Thinking;

/// The word for a level; `None` for off.
pub(crate) fn level(thinking: Thinking) -> Option<&'static str> {
    match thinking {
        Thinking::Off => None,
        Thinking::Low => Some("low"),
        Thinking::Medium => Some("medium"),
        Thinking::High => Some("high"),
    }
}

pub(super) fn ask(body: &mut Map<String, Value>, thinking: Thinking, how: ThinkingRequest) {
    let level = level(thinking);
    let effort = level.map(|level| ("reasoning_effort", json!(level)));
    let fields = match how {
        ThinkingRequest::Effort => vec![effort],
        ThinkingRequest::HighEffort => vec![level.map(|_| ("reasoning_effort", json!("high")))],
        ThinkingRequest::Reasoning => vec![level.map(|level| ("reasoning", json!({ "effort": level })))],
        ThinkingRequest::Switch => {
            let switch = if level.is_some() { "enabled" } else { "disabled" };
            vec![Some(("thinking", json!({ "type": switch }))), effort]
        }
        ThinkingRequest::Template => {
            vec![effort, Some(("chat_template_kwargs", json!({ "enable_thinking": level.is_some() })))]
        }
    };
    for (field, value) in fields.into_iter().flatten() {
        body.insert(field.to_owned(), value);
    }
}

/// The field in which thoughts go back beside an answer.
pub(super) fn back(
    thoughts: Option<&Value>,
    has_calls: bool,
    thinking: Thinking,
    how: ThoughtsBack,
) -> Option<(&'static str, Value)> {
    match how {
        // It rejects a transcript with calls but without thoughts, so those of another provider's calls are
        // sent empty.
        ThoughtsBack::ReasoningContent if has_calls && thinking != Thinking::Off => {
            Some(("reasoning_content", thoughts.cloned().unwrap_or_else(|| json!(""))))
        }
        ThoughtsBack::ReasoningDetails => thoughts.map(|data| ("reasoning_details", data.clone())),
        ThoughtsBack::ReasoningContent | ThoughtsBack::Never => None,
    }
}
