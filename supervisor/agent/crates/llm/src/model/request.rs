//! A request to a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use talon_agent_settings::Thinking;

use super::{Message, ShownImages};

/// One question to one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The model, by the provider's own name for it.
    pub model: String,
    /// The transcript; the system messages come first.
    pub messages: Vec<Message>,
    /// The bytes of the images in the messages. One without bytes is described in words.
    pub images: ShownImages,
    /// How many of the first messages are the same in each request of a session: a provider's cache may begin
    /// with them. 0 asks for no caching.
    pub stable_messages: usize,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// Further tools, where not all are on offer at once.
    pub deferred: Option<DeferredTools>,
    /// Whether the model may call them.
    pub tool_choice: ToolChoice,
    /// How much the model should think before it answers.
    pub thinking: Thinking,
    /// Whether `thinking` is only what holds for all models, so that a level of the model's own is stronger.
    pub is_general_thinking: bool,
    /// The answer's token limit; `None` uses the provider's own.
    pub max_output_tokens: Option<u32>,
    /// From 0 (always the likeliest word) up; `None` is the provider's default.
    pub temperature: Option<f32>,
    /// Of how much of all likelihood words are chosen, up to 1; `None` is the provider's default.
    pub top_p: Option<f32>,
    /// Texts before which the answer ends. Who asks has to cut it there: not every provider is told.
    pub stop: Vec<String>,
    /// For answers that can be had again, of providers that have a word for it.
    pub seed: Option<i64>,
    /// The JSON Schema that the answer has to fit, for providers that can enforce it.
    pub answer_schema: Option<Value>,
}

impl Request {
    /// The tools on offer, and the deferred ones.
    pub fn all_tools(&self) -> impl Iterator<Item = &ToolSpec> {
        let deferred = self.deferred.iter().flat_map(|deferred| deferred.specs.iter());
        self.tools.iter().chain(deferred)
    }

    /// The stops that a provider is told, which ends the answer sooner. None while the model thinks: they would end some thoughts.
    pub(crate) fn told_stops(&self) -> &[String] {
        if self.thinking == Thinking::Off { &self.stop } else { &[] }
    }
}

/// Whether a model may call the tools on offer, or has to. They stay in the request either way, so that its beginning
/// remains what a provider has cached. Where a format has no word for it, the choice is left to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It has to answer.
    None,
    /// It has to call some tool.
    Required,
    /// It has to call the tool of this name.
    Tool(String),
}

/// Tools that are not on offer, because not all fit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeferredTools {
    /// Their declarations, for a provider that searches them itself. Others are not sent them.
    pub specs: Arc<[ToolSpec]>,
    /// The name of the tool on offer that finds them for all other providers.
    pub search_tool: String,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`, which all providers accept.
    pub name: String,
    /// What it does, guarded.
    pub description: String,
    /// The JSON Schema of its arguments, an object. Shared: each question has all tools.
    pub parameters: Arc<Value>,
}
