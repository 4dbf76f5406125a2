//! A request to a model.

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use talon_agent_settings::Thinking;

use super::Message;

/// One question to one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The model, by the provider's own name for it.
    pub model: String,
    /// The transcript; the system messages come first.
    pub messages: Vec<Message>,
    /// How many of the first messages are the same in each request of a session: a provider's cache may begin
    /// with them. 0 asks for no caching.
    pub stable_messages: usize,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// How much the model should think before it answers.
    pub thinking: Thinking,
    /// The answer's token limit; `None` uses the provider's own.
    pub max_output_tokens: Option<u32>,
    /// From 0 (always the likeliest word) up; `None` is the provider's default.
    pub temperature: Option<f32>,
    /// The JSON Schema that the answer has to fit, for providers that can enforce it.
    pub answer_schema: Option<Value>,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`, which all providers accept.
    pub name: String,
    /// What it does, guarded.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}
