//! How a turn can end.

use talon_llm::model::Usage;

use crate::answer::{AnswerError, FinalAnswer};
use crate::budget::Limit;

/// What a client receives at the end of a turn with an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedTurn {
    /// The answer.
    pub answer: FinalAnswer,
    /// The number of questions to the model.
    pub iterations: u32,
    /// Tokens of all questions and answers.
    pub usage: Usage,
    /// Their cost, in millionths of a US dollar.
    pub micro_usd: u64,
}

/// What a client receives at the end of a turn without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureReport {
    /// Why.
    pub reason: Failure,
    /// The reason for people: what happened and what to do.
    pub sentence: String,
    /// The last text of the model, if there is any. Not checked against a schema.
    pub partial: Option<String>,
}

/// Why a turn ends without an answer. Its text is a sentence for people that says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A budget is used up.
    #[error("{}", .0.for_user())]
    Limit(Limit),
    /// The model's answers did not fit, and no retry was left.
    #[error("{0}")]
    Answer(AnswerError),
    /// No model answered. The text is the providers'.
    #[error("No model answered: {0}")]
    Model(String),
    /// The journal could not be written.
    #[error("The session could not be stored, so the turn was ended rather than lost half: {0}")]
    Store(String),
    /// The transcript does not fit the model's window.
    #[error("{0}")]
    Window(String),
    /// The person did not answer the model's question in time.
    #[error("The model asked something, and got no answer within {0}. Answer it in a new message.")]
    Unanswered(String),
    /// It was cancelled.
    #[error("Cancelled.")]
    Cancelled,
    /// A filter or hook dropped the message or the answer. The text says which, and why.
    #[error("{0}")]
    Dropped(String),
    /// A filter or hook failed without which nothing goes on. The text says which.
    #[error("{0}")]
    Hook(String),
    /// A defect of the agent.
    #[error("Something went wrong inside the agent; its log says what: {0}")]
    Internal(String),
}

impl Failure {
    /// The error code, for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Limit(limit) => limit.word(),
            Self::Answer(error) => error.word(),
            Self::Model(_) => "no_model",
            Self::Store(_) => "not_stored",
            Self::Window(_) => "window_full",
            Self::Unanswered(_) => "expired",
            Self::Cancelled => "cancelled",
            Self::Dropped(_) => "dropped",
            Self::Hook(_) => "hook_failed",
            Self::Internal(_) => "internal",
        }
    }
}
