//! The session in the store, as a turn sees it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_llm::model::{Answer, Thinking};

use crate::context::{Past, Summary};
use crate::loop_context::ToolResult;

/// What a turn makes durable, in the order in which it happens. From these a turn that was interrupted is rebuilt.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A person's message: the turn begins.
    Asked {
        /// What they said.
        text: String,
        /// What they said with it of this turn alone.
        with: Box<AskedWith>,
    },
    /// The model's answer, with its calls, and what it cost in millionths of a dollar.
    Answered {
        /// The answer.
        answer: Box<Answer>,
        /// What question and answer cost.
        micro_usd: u64,
    },
    /// A call is about to be made: it may be, and nobody is waited for any more. A call without this, of a turn that was
    /// interrupted, was never made.
    Began {
        /// Which of the answer's calls, from 0.
        place: usize,
    },
    /// What came of one call while others of the same answer still run or wait: a person may take hours.
    Brought {
        /// Which of the answer's calls, from 0.
        place: usize,
        /// What came of it.
        result: ToolResult,
    },
    /// What came of the calls, in their order.
    Executed(Vec<ToolResult>),
    /// A note of ours: a warning, or feedback on an answer that did not fit.
    Noted {
        /// The text.
        text: String,
        /// It takes the place of the feedback before.
        feedback: bool,
    },
    /// The turn is over.
    Ended(Ended),
}

/// What a person says of one turn alone. It is kept with their message, so that a turn that goes on after a restart may do no more
/// than it might before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AskedWith {
    /// See [`super::TurnSpec::within`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
    /// See [`super::TurnSpec::no_tools`].
    #[serde(default)]
    pub no_tools: bool,
    /// The JSON Schema that the answer has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The model for this turn ([`talon_llm::route::router::Pins::request`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long it thinks.
    #[serde(default)]
    pub thinking: Thinking,
}

/// How a turn ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// `done`, or the word of what ended it.
    pub reason: String,
    /// What the person was told, if it was not an answer.
    pub message: String,
    /// What the model is told of it in the next turn; empty if there is an answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Why nothing was kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the session cannot be kept: {why}")]
pub struct JournalError {
    /// What the store said.
    pub why: String,
}

/// One session's past, and where its turns are written to. An entry that was acknowledged is on the disk.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Adds an entry of this turn.
    ///
    /// # Errors
    /// [`JournalError`]; nothing of it was kept.
    async fn add(&self, turn: u64, entry: Entry) -> Result<(), JournalError>;

    /// What a model may be shown: what was said and is not summarized yet, and the running summary.
    ///
    /// # Errors
    /// [`JournalError`]
    async fn past(&self) -> Result<(Vec<Past>, Summary), JournalError>;

    /// Puts a summary in the place of the oldest messages, so many of those that [`Journal::past`] gave; they have to be whole
    /// turns.
    ///
    /// # Errors
    /// [`JournalError`]
    async fn summarized(&self, messages: usize, summary: Summary) -> Result<(), JournalError>;
}
