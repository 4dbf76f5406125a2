//! The phase of a state that clients are shown.
//!
//! | state | phase |
//! |---|---|
//! | `init`, `await_llm` | `planning`: the model has the goal and what is known so far in front of it |
//! | `evaluate_response` | `deciding`: answer, or call tools? |
//! | `request_clarification` | `deciding`: the person decides |
//! | `process_tools` | `executing` |
//! | `update_budgets` | `evaluating`: did it help, and may the turn continue? |
//! | any, while [`Effect::PrepareContext`](super::Effect::PrepareContext) has a summary written | `compressing` |
//! | `handle_completion`, and `finalize` while the answer is stored and sent | `responding` |
//! | `finalize` and `terminate_error`, once their effects are performed | `done` |
//!
//! `terminate_error` is `done` from its start: there is no answer to wait for.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::State;
use super::state::words;

words! {
    /// A phase, as clients are shown it.
    Phase {
        /// The model is asked what to do.
        Planning = "planning",
        /// Its answer is read.
        Deciding = "deciding",
        /// Tools run.
        Executing = "executing",
        /// The results are evaluated.
        Evaluating = "evaluating",
        /// Messages are summarized.
        Compressing = "compressing",
        /// The answer is checked, stored and sent.
        Responding = "responding",
        /// The turn is over.
        Done = "done",
    }
}

/// What the driver does, where that says more than the state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Activity {
    /// Performs the state's effects.
    #[default]
    Performing,
    /// Summarizes.
    Summarizing,
    /// Has performed everything.
    Finished,
}

impl Phase {
    /// The phase by the table above.
    #[must_use]
    pub fn of(state: State, activity: Activity) -> Self {
        match (state, activity) {
            (State::TerminateError, _) | (State::Finalize, Activity::Finished) => Self::Done,
            (_, Activity::Summarizing) => Self::Compressing,
            (State::Init | State::AwaitLlm, _) => Self::Planning,
            (State::EvaluateResponse | State::RequestClarification, _) => Self::Deciding,
            (State::ProcessTools, _) => Self::Executing,
            (State::UpdateBudgets, _) => Self::Evaluating,
            (State::HandleCompletion | State::Finalize, _) => Self::Responding,
        }
    }
}
