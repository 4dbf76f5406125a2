//! The entries of a journal, and the journal as a turn sees it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_agent_settings::Sampling;
use talon_llm::model::{Answer, Image, Thinking, Usage};
use talon_sanitize::MarkedSpan;

use crate::context::{HistoryMessage, Summary};
use crate::hooks::{HookedAnswer, HookedRequest};
use crate::media::Attachment;
use crate::question::Question;
use crate::tool_result::ToolResult;

/// What a turn makes durable, in order. An interrupted turn is rebuilt from these entries.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalEntry {
    /// A person's message that filters and request hooks have still to see. No model sees it, and no search finds it;
    /// [`Asked`](Self::Asked) follows with what they let through. A turn without them does not have it.
    Received {
        /// The message.
        text: String,
        /// The options for this turn alone.
        with: Box<TurnOptions>,
    },
    /// A person's message: the turn begins.
    Asked {
        /// The message.
        text: String,
        /// The options for this turn alone.
        with: Box<TurnOptions>,
    },
    /// The model's answer, with its calls, and what it cost in millionths of a dollar.
    Answered {
        /// The answer.
        answer: Box<Answer>,
        /// What question and answer cost.
        micro_usd: u64,
        /// Whether people may not see its text, since response hooks have not.
        withheld: bool,
    },
    /// Response hooks have seen the answer.
    AnswerHooked(Box<HookedAnswer>),
    /// A call is about to be made: it was approved, if it had to be. A call of an interrupted turn without
    /// this entry was never made.
    CallStarted {
        /// Which of the answer's calls, from 0.
        place: usize,
    },
    /// A call ended with a plugin's question to the person, and continues with the answer. Another
    /// [`CallStarted`](Self::CallStarted) says that it did.
    CallParked {
        /// Which of the answer's calls, from 0.
        place: usize,
        /// The question.
        question: Box<Question>,
    },
    /// The result of one call while others of the same answer still run or wait, which may take hours.
    CallFinished {
        /// Which of the answer's calls, from 0.
        place: usize,
        /// What the call returned.
        result: ToolResult,
    },
    /// The results of all calls, in the calls' order.
    CallsFinished(Vec<ToolResult>),
    /// A note of the agent: a warning, or feedback on an answer that did not fit.
    Noted {
        /// The text.
        text: String,
        /// Replaces the previous feedback.
        feedback: bool,
    },
    /// The turn is over.
    Ended(TurnOutcome),
    /// The person took back this turn and all after it: no model sees them any more. What they did stays.
    Undone {
        /// The first turn.
        from: u64,
    },
}

/// A person's options for one turn. Stored with the message, so that a turn that resumes after a restart may
/// not do more than before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnOptions {
    /// See [`TurnSpec::within`](crate::driver::TurnSpec::within).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
    /// See [`TurnSpec::no_tools`](crate::driver::TurnSpec::no_tools).
    #[serde(default)]
    pub no_tools: bool,
    /// The JSON Schema that the answer has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The model for this turn ([`talon_llm::route::router::Pins::request`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long the model thinks.
    #[serde(default)]
    pub thinking: Thinking,
    /// Whether that is only the configuration's general level.
    #[serde(default)]
    pub is_general_thinking: bool,
    /// How it chooses its words.
    #[serde(default)]
    pub sampling: Sampling,
    /// Whether only models on this machine may see it.
    #[serde(default)]
    pub local_only: bool,
    /// Whether a person followed it and could be asked back.
    #[serde(default)]
    pub can_answer: bool,
    /// Whether a person approves a plan first.
    #[serde(default)]
    pub plans_first: bool,
    /// The images that belong to the message; their bytes are stored elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Other files that came with the message; their bytes are stored elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The most that the turn may cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    /// What filters and request hooks made of the message. The message of the entry is what they let through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Box<HookedRequest>>,
    /// The client's own name of the message; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    /// Where it was said, if that is not the session's channel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Who speaks, where several people share the session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sender_name: String,
    /// Whose message it is, where several people share the session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub member: String,
    /// The clients' names of other messages that are a part of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// What its client noted beside it, for itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// What a turn used, for clients that come back after its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnTotals {
    /// All questions.
    pub usage: Usage,
    /// The provider of the answer; empty without one.
    pub provider: String,
    /// Its model, as the catalog names it.
    pub model: String,
    /// The last iteration.
    pub iteration: u32,
    /// What it cost, in picodollars.
    pub cost_pico_usd: u64,
    /// From its begin, or from where it was continued.
    pub duration_ms: u64,
    /// Calls that ended.
    pub tool_calls: u32,
    /// How it finished, as [`talon_proto::agent::Done`] and [`talon_proto::agent::Error`] have it.
    pub finish: String,
}

/// How a turn ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnOutcome {
    /// `done`, or the error word.
    pub reason: String,
    /// The message that the person received, if it was not an answer.
    pub message: String,
    /// What the model had written of an answer when the turn was ended in the middle of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partial: String,
    /// The note for the model in the next turn; empty if there is an answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// What it used; `None` for a turn that did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Box<TurnTotals>>,
}

/// The session could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the session cannot be kept: {why}")]
pub struct JournalError {
    /// The store's error.
    pub why: String,
}

/// One session's history, to which its turns append. An acknowledged entry is on disk.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Adds an entry of this turn.
    ///
    /// # Errors
    /// [`JournalError`]; nothing was stored.
    async fn add(&self, turn: u64, entry: JournalEntry) -> Result<(), JournalError> {
        self.add_all(turn, vec![entry]).await
    }

    /// Adds entries of this turn with one write: after a crash all of them are there, or none.
    ///
    /// # Errors
    /// [`JournalError`]; nothing was stored.
    async fn add_all(&self, turn: u64, entries: Vec<JournalEntry>) -> Result<(), JournalError>;

    /// Returns the messages that are not summarized yet, and the running summary.
    ///
    /// # Errors
    /// [`JournalError`]
    async fn past(&self) -> Result<(Vec<HistoryMessage>, Summary), JournalError>;

    /// Returns what marked pieces of the results that are not summarized were before.
    ///
    /// # Errors
    /// [`JournalError`]
    async fn originals(&self) -> Result<Vec<MarkedSpan>, JournalError>;

    /// Replaces the oldest messages by a summary: the first `messages` of those that [`Journal::past`]
    /// returned, which have to be whole turns.
    ///
    /// # Errors
    /// [`JournalError`]
    async fn summarized(&self, messages: usize, summary: Summary) -> Result<(), JournalError>;
}
