//! A transcript's messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Image;

/// The prefix of notes that the agent writes into a transcript in the user's role: a warning, or feedback on
/// an answer. Providers have no role for notes.
pub const NOTE_BEGINS: &str = "[Note of the agent, not of the user: ";

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Standing instructions. They go into the separate field of providers that have one.
    System {
        /// What it says.
        text: String,
    },
    /// A person, or the program that acts for them.
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
        /// The model's thoughts, for the provider that wants to see them again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thoughts: Option<Thoughts>,
    },
    /// Images in the user's role. Those of a person follow their message, those of a tool the results of the
    /// calls that were made together.
    Images {
        /// What is said before a tool's: whose they are. Empty for a person's.
        #[serde(default)]
        introduction: String,
        /// The images; their bytes are in the request.
        images: Vec<Image>,
    },
    /// The result of one call. Follows the message with the call, before any other.
    Tool {
        /// The id of the call.
        call_id: String,
        /// The guarded text.
        content: String,
        /// The call failed; the text says how.
        #[serde(default)]
        is_error: bool,
    },
}

/// A model's thoughts, in its provider's own format: some sign them, others encrypt them, and only the
/// provider reads them.
///
/// Anthropic and DeepSeek reject a transcript whose calls lack the thoughts before them. Thoughts go back
/// only to the same model of the same provider; all others are asked without them.
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
    /// Unique within the transcript. Made up if the provider gives none.
    pub id: String,
    /// The tool's name as the request offered it; a model may also invent one.
    pub name: String,
    /// The arguments.
    pub arguments: Arguments,
}

/// A call's arguments. Models write them as text, and the text is not always what it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    /// A JSON object.
    Object(Map<String, Value>),
    /// Any other text, as the model wrote it: the loop reports it to the model instead of guessing.
    Unreadable(String),
}
