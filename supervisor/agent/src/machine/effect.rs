//! The effects of a transition.

use std::fmt;

use serde::{Deserialize, Serialize};
use talon_llm::model::ToolCall;

use super::state::words;
use crate::answer::AnswerVerdict;
use crate::budget::{self, BudgetCheck};
use crate::loop_context::{FailureReport, FinishedTurn, LoopContext};

words! {
    /// The kind of an effect, as the table lists it. [`EffectKind::of`] makes the [`Effect`].
    EffectKind {
        /// See [`Effect::PrepareContext`].
        PrepareContext = "prepare_context",
        /// See [`Effect::AskModel`].
        AskModel = "ask_model",
        /// See [`Effect::AppendAnswer`].
        AppendAnswer = "append_answer",
        /// See [`Effect::RunTools`].
        RunTools = "run_tools",
        /// See [`Effect::AskPerson`].
        AskPerson = "ask_person",
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
        /// See [`Effect::TellHandedOver`].
        TellHandedOver = "tell_handed_over",
        /// See [`Effect::TellEnd`].
        TellEnd = "tell_end",
    }
}

/// What the driver has to do. It is data, so that tests can compare it and logs can show it.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Select what the model sees, and summarize what does not fit; meanwhile clients are shown the phase
    /// `compressing`.
    PrepareContext,
    /// Ask the model. Its answer is the next fact.
    AskModel {
        /// The number of this question in the turn, from 1.
        iteration: u32,
    },
    /// Add the answer to the transcript and make it durable, before it takes effect.
    AppendAnswer,
    /// Run these calls concurrently, and return a result for each, in this order. [`crate::tools::plan`]
    /// decides which can be made.
    RunTools {
        /// The answer's calls.
        calls: Vec<ToolCall>,
    },
    /// Ask the person the question of the answer's only call. Its result is the next fact.
    AskPerson {
        /// The call.
        call: ToolCall,
    },
    /// Add the results to the transcript, in the order of the calls, and make them durable.
    AppendResults,
    /// Check the answer ([`crate::answer::check`]). The verdict is the next fact.
    CheckAnswer,
    /// Add this note of the agent to the transcript.
    Warn {
        /// The note to the model.
        note: String,
    },
    /// Send the model the problems of its answer. Replaces the previous feedback, so that the transcript does
    /// not fill with it.
    Feedback {
        /// The feedback to the model.
        text: String,
    },
    /// Cancel everything that still runs for this turn: the question to the model, calls.
    CancelRunning,
    /// Make the turn's end durable, and store what is to be remembered of it.
    Store,
    /// Send the answer to the client.
    TellDone(FinishedTurn),
    /// Send the client the calls that it makes.
    TellHandedOver,
    /// Send the failure to the client, with the partial answer if there is one.
    TellEnd(FailureReport),
}

impl EffectKind {
    /// The effect in this context. `None` if there is nothing to do, such as no warning.
    #[must_use]
    pub fn of(self, context: &LoopContext) -> Option<Effect> {
        Some(match self {
            Self::PrepareContext => Effect::PrepareContext,
            Self::AskModel => Effect::AskModel { iteration: context.iteration() + 1 },
            Self::AppendAnswer => Effect::AppendAnswer,
            Self::RunTools => Effect::RunTools { calls: context.calls().to_vec() },
            Self::AskPerson => Effect::AskPerson { call: context.calls().first()?.clone() },
            Self::AppendResults => Effect::AppendResults,
            Self::CheckAnswer => Effect::CheckAnswer,
            Self::Warn => match context.check_budgets() {
                BudgetCheck::Within(warnings) if !warnings.is_empty() => {
                    Effect::Warn { note: budget::note(&warnings) }
                }
                BudgetCheck::Within(_) | BudgetCheck::Exceeded(_) => return None,
            },
            Self::Feedback => match context.verdict() {
                Some(AnswerVerdict::Invalid(error)) => {
                    let of = error.retries(context.budgets().structured_retries);
                    let attempt = context.retries() + 1;
                    Effect::Feedback { text: error.feedback(attempt, of) }
                }
                Some(AnswerVerdict::Accepted(_)) | None => return None,
            },
            Self::CancelRunning => Effect::CancelRunning,
            Self::Store => Effect::Store,
            Self::TellDone => Effect::TellDone(context.finished()?),
            Self::TellHandedOver => Effect::TellHandedOver,
            Self::TellEnd => Effect::TellEnd(context.failure_report()?),
        })
    }
}
