//! What a model is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use talon_agent_settings::Thinking;

use super::Message;

/// One question to one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The model, by the provider's own name for it.
    pub model: String,
    /// The transcript; the system messages stand first.
    pub messages: Vec<Message>,
    /// What it may call.
    pub tools: Vec<ToolSpec>,
    /// How much it should think before it answers.
    pub thinking: Thinking,
    /// The most tokens it may answer with; `None` leaves it to the provider, where that has a limit of its own.
    pub max_output_tokens: Option<u32>,
    /// From 0 (always the likeliest word) up; `None` is the provider's default.
    pub temperature: Option<f32>,
    /// The JSON Schema that the answer has to fit, for providers that can hold a model to one.
    pub answer_schema: Option<Value>,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`, which is what all providers take.
    pub name: String,
    /// What it does, guarded.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}
