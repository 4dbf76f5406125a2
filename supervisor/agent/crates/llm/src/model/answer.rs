//! What a model answers, piece by piece and whole.

use serde::{Deserialize, Serialize};

use super::{Message, Thoughts, ToolCall};

/// A piece of an answer, as it comes.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// More of what it thinks.
    Thinking(String),
    /// More of what it says.
    Text(String),
    /// A call, once it is whole.
    Call(ToolCall),
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What it said; empty if it only called tools.
    pub text: String,
    /// What it called, in its order.
    pub calls: Vec<ToolCall>,
    /// The tool of a call that was cut off by the limit of tokens or a filter, and is therefore not among the calls: half of
    /// its arguments may well be readable and mean something else.
    pub cut_call: Option<String>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it used. `None` if the provider did not say.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it; some are an alias's current meaning.
    pub model: String,
    /// What the provider wants to see again with this answer.
    pub thoughts: Option<Thoughts>,
}

impl Answer {
    /// The message that stands for it in the transcript.
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
    /// It had said everything.
    #[default]
    Stop,
    /// It waits for what its calls bring.
    ToolCalls,
    /// It ran into the limit of tokens; text and calls may be cut off.
    Length,
    /// The provider withheld something.
    Filtered,
}

/// Tokens that a request used, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All of the question, with what was read from the provider's cache.
    pub input_tokens: u64,
    /// Of these, read from its cache, which is cheaper.
    pub cached_input_tokens: u64,
    /// All of the answer, with what it thought.
    pub output_tokens: u64,
    /// Of these, thought.
    pub thinking_tokens: u64,
}
