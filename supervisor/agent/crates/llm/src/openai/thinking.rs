//! How each dialect requests thinking, and receives thoughts back.

use serde_json::{Map, Value, json};

use crate::config::Dialect;
use crate::model::{Thinking, Thoughts};

fn level(thinking: Thinking) -> Option<&'static str> {
    match thinking {
        Thinking::Off => None,
        Thinking::Low => Some("low"),
        Thinking::Medium => Some("medium"),
        Thinking::High => Some("high"),
    }
}

pub(super) fn ask(body: &mut Map<String, Value>, thinking: Thinking, dialect: Dialect) {
    let level = level(thinking);
    let effort = level.map(|level| ("reasoning_effort", json!(level)));
    let fields = match dialect {
        // Models that cannot think reject the field, so "off" omits it.
        Dialect::Openai | Dialect::Plain => vec![effort],
        Dialect::Openrouter => vec![level.map(|level| ("reasoning", json!({ "effort": level })))],
        // Its models think by default.
        Dialect::Deepseek => {
            let switch = if level.is_some() { "enabled" } else { "disabled" };
            vec![Some(("thinking", json!({ "type": switch }))), effort]
        }
        // Models with levels read the first field, the others' templates the second; both ignore unknown
        // fields.
        Dialect::Vllm => {
            vec![effort, Some(("chat_template_kwargs", json!({ "enable_thinking": level.is_some() })))]
        }
    };
    for (field, value) in fields.into_iter().flatten() {
        body.insert(field.to_owned(), value);
    }
}

/// The field in which thoughts go back beside an answer.
pub(super) fn back(
    thoughts: Option<&Thoughts>,
    has_calls: bool,
    thinking: Thinking,
    dialect: Dialect,
) -> Option<(&'static str, Value)> {
    let data = thoughts.map(|thoughts| thoughts.data.clone());
    match dialect {
        // It rejects a transcript with calls but without thoughts, so those of another provider's calls are
        // sent empty.
        Dialect::Deepseek if has_calls && thinking != Thinking::Off => {
            Some(("reasoning_content", data.unwrap_or_else(|| json!(""))))
        }
        Dialect::Openrouter => data.map(|data| ("reasoning_details", data)),
        _ => None,
    }
}
