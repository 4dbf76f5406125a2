//! How a turn can end.

use talon_llm::model::Usage;

use crate::answer::{AnswerError, FinalAnswer};
use crate::budget::Limit;

/// What was found of an answer that calls nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is what was asked for.
    Accepted(FinalAnswer),
    /// It is not.
    Invalid(AnswerError),
}

/// What a client is told at the end of a turn that has an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The answer.
    pub answer: FinalAnswer,
    /// How often the model was asked.
    pub iterations: u32,
    /// Tokens of all questions and answers.
    pub usage: Usage,
    /// What they cost, in millionths of a US dollar.
    pub micro_usd: u64,
}

/// What a client is told at the end of a turn that has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub reason: Failure,
    /// The same for people: what happened and what to do.
    pub sentence: String,
    /// The last that the model said, if it said anything. Not checked against any schema.
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
    /// No model answered. The sentence is the providers'.
    #[error("No model answered: {0}")]
    Model(String),
    /// What has to be durable could not be stored.
    #[error("The session could not be stored, so the turn was ended rather than lost half: {0}")]
    Store(String),
    /// The transcript does not fit the model's window.
    #[error("{0}")]
    Window(String),
    /// Somebody let go of it.
    #[error("Cancelled.")]
    Cancelled,
    /// A defect of ours, or of a driver.
    #[error("Something went wrong inside the agent; its log says what: {0}")]
    Internal(String),
}

impl Failure {
    /// A word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Limit(limit) => limit.word(),
            Self::Answer(error) => error.word(),
            Self::Model(_) => "no_model",
            Self::Store(_) => "not_stored",
            Self::Window(_) => "window_full",
            Self::Cancelled => "cancelled",
            Self::Internal(_) => "internal",
        }
    }
}
