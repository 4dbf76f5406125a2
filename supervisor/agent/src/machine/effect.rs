//! What a transition wants done.

use std::fmt;

use serde::{Deserialize, Serialize};
use talon_llm::model::ToolCall;

use super::state::words;
use crate::budget::{self, Outcome};
use crate::loop_context::{End, Finished, LoopContext, Verdict};

words! {
    /// A kind of effect, as the table has it. [`Deed::of`] makes an [`Effect`] of it.
    Deed {
        /// See [`Effect::PrepareContext`].
        PrepareContext = "prepare_context",
        /// See [`Effect::AskModel`].
        AskModel = "ask_model",
        /// See [`Effect::AppendAnswer`].
        AppendAnswer = "append_answer",
        /// See [`Effect::RunTools`].
        RunTools = "run_tools",
        /// See [`Effect::AppendResults`].
        AppendResults = "append_results",
        /// See [`Effect::CheckAnswer`].
        CheckAnswer = "check_answer",
        /// See [`Effect::Warn`].
        Warn = "warn",
        /// See [`Effect::Feedback`].
        Feedback = "feedback",
        /// See [`Effect::CancelRunning`].
        CancelRunning = "cancel_running",
        /// See [`Effect::Store`].
        Store = "store",
        /// See [`Effect::TellDone`].
        TellDone = "tell_done",
        /// See [`Effect::TellEnd`].
        TellEnd = "tell_end",
    }
}

/// What the driver is to do. Data, so that a test can read it and a log can show it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Choose what the model gets to see, and let what does not fit be summarized first; while it is, clients are shown the phase
    /// `compressing`.
    PrepareContext,
    /// Ask the model. Its answer is the next fact.
    AskModel {
        /// Which question of the turn this is, from 1.
        iteration: u32,
    },
    /// Add the answer to the transcript and make it durable, before anything comes of it.
    AppendAnswer,
    /// Run these at once, and bring a result for each, in this order. [`crate::tools::plan`] says which of them can be made at all.
    RunTools {
        /// What the answer called.
        calls: Vec<ToolCall>,
    },
    /// Add the results to the transcript, in the order of the calls, and make them durable.
    AppendResults,
    /// Check the answer ([`crate::answer::check`]). The verdict is the next fact.
    CheckAnswer,
    /// Add this note to the transcript, as a message from nobody but us.
    Warn {
        /// What the model is told.
        note: String,
    },
    /// Tell the model what is wrong with its answer. Takes the place of the feedback before, so that the transcript does not fill
    /// with them.
    Feedback {
        /// What the model is told.
        text: String,
    },
    /// Let go of whatever still runs for this turn: the question to the model, calls.
    CancelRunning,
    /// Make the turn durable with how it ended, and what is to be remembered of it.
    Store,
    /// Tell the client the answer.
    TellDone(Finished),
    /// Tell the client why there is none, with what there is of one.
    TellEnd(End),
}

impl Deed {
    /// What it means now. `None` if there is nothing to do, as there is without a warning.
    #[must_use]
    pub fn of(self, context: &LoopContext) -> Option<Effect> {
        Some(match self {
            Self::PrepareContext => Effect::PrepareContext,
            Self::AskModel => Effect::AskModel { iteration: context.iteration() + 1 },
            Self::AppendAnswer => Effect::AppendAnswer,
            Self::RunTools => Effect::RunTools { calls: context.calls().to_vec() },
            Self::AppendResults => Effect::AppendResults,
            Self::CheckAnswer => Effect::CheckAnswer,
            Self::Warn => match budget::judge(context) {
                Outcome::Within(warnings) if !warnings.is_empty() => {
                    Effect::Warn { note: budget::note(&warnings) }
                }
                Outcome::Within(_) | Outcome::Exceeded(_) => return None,
            },
            Self::Feedback => match context.verdict() {
                Some(Verdict::Invalid(error)) => {
                    let (attempt, of) = (context.retries() + 1, context.budgets().structured_retries);
                    Effect::Feedback { text: error.feedback(attempt, of) }
                }
                Some(Verdict::Accepted(_)) | None => return None,
            },
            Self::CancelRunning => Effect::CancelRunning,
            Self::Store => Effect::Store,
            Self::TellDone => Effect::TellDone(context.finished()?),
            Self::TellEnd => Effect::TellEnd(context.end()?),
        })
    }
}
