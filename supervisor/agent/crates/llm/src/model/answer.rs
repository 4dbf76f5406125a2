//! A model's answer, in pieces and whole.

use serde::{Deserialize, Serialize};

use super::{Message, Thoughts, ToolCall};

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// A piece of thinking.
    Thinking(String),
    /// A piece of text.
    Text(String),
    /// A complete call.
    Call(ToolCall),
}

/// A complete answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The text; empty if the model only called tools.
    pub text: String,
    /// The calls, in order.
    pub calls: Vec<ToolCall>,
    /// The tool of a call that was cut off by the limit of tokens or a filter, and is therefore not among the
    /// calls: half of its arguments may well be readable and mean something else.
    pub cut_call: Option<String>,
    /// Why the model stopped.
    pub finish: Finish,
    /// The tokens used. `None` if the provider did not say.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it; some are an alias's current meaning.
    pub model: String,
    /// Thoughts that the provider wants to see again with this answer.
    pub thoughts: Option<Thoughts>,
    /// What it thought, as far as it said, for people. Whoever collects the pieces fills it in.
    pub thinking: String,
}

impl Answer {
    /// The message of this answer in the transcript.
    #[must_use]
    pub fn message(&self) -> Message {
        Message::Assistant {
            text: self.text.clone(),
            calls: self.calls.clone(),
            thoughts: self.thoughts.clone(),
        }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The answer is complete.
    #[default]
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// It reached the token limit; text and calls may be truncated.
    Length,
    /// The provider withheld something.
    Filtered,
    /// The model, or its provider for it, refused to answer.
    Refused,
}

/// Tokens that a request used, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the question, including those read from the provider's cache.
    pub input_tokens: u64,
    /// Of these, read from its cache, which is cheaper.
    pub cached_input_tokens: u64,
    /// Of these, written to its cache, which some charge more for.
    #[serde(default)]
    pub cache_written_tokens: u64,
    /// All tokens of the answer, including thinking.
    pub output_tokens: u64,
    /// Of these, thinking.
    pub thinking_tokens: u64,
}

impl Usage {
    /// Adds the tokens of another request.
    pub fn add(&mut self, more: Self) {
        let sum = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        sum(&mut self.input_tokens, more.input_tokens);
        sum(&mut self.cached_input_tokens, more.cached_input_tokens);
        sum(&mut self.cache_written_tokens, more.cache_written_tokens);
        sum(&mut self.output_tokens, more.output_tokens);
        sum(&mut self.thinking_tokens, more.thinking_tokens);
    }
}
