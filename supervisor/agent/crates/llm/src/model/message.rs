//! A transcript's messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a note begins that the agent itself writes into a transcript, in the user's place: a warning, or what is wrong with an answer. No
/// provider knows a role for it.
pub const NOTE_BEGINS: &str = "[Note of the agent, not of the user: ";

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Standing instructions. Providers that have a place of their own for them get them there.
    System {
        /// What it says.
        text: String,
    },
    /// A person, or the program that asks in their place.
    User {
        /// What they say.
        text: String,
    },
    /// The model.
    Assistant {
        /// What it said; empty if it only called tools.
        text: String,
        /// What it called, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// What it thought, for the provider that wants to see it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thoughts: Option<Thoughts>,
    },
    /// What came of one call. Follows the message that made it, before anything else is said.
    Tool {
        /// Of which call.
        call_id: String,
        /// The guarded text.
        content: String,
        /// The call failed; the text says how.
        #[serde(default)]
        is_error: bool,
    },
}

/// What a model thought, in its provider's own format: signed by some, encrypted by others, and read by nobody else.
///
/// Anthropic and DeepSeek refuse a transcript whose calls come without the thoughts before them. They go back to the
/// same model of the same provider only; every other one asks without them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thoughts {
    /// The provider, by its name in the configuration.
    pub provider: String,
    /// The model, as it was asked for.
    pub model: String,
    /// What it sent.
    pub data: Value,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the transcript. Where a provider gives none, it is made up.
    pub id: String,
    /// The tool's name as the request offered it; a model may well invent another.
    pub name: String,
    /// What to call it with.
    pub arguments: Arguments,
}

/// A call's arguments. Models write them as text, and the text is not always what it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    /// A JSON object.
    Object(Map<String, Value>),
    /// Anything else, as it was written: the loop tells the model, instead of guessing.
    Unreadable(String),
}
