//! What clients are shown of a state.
//!
//! | state | phase |
//! |---|---|
//! | `init`, `await_llm` | `planning`: the model has the goal and what is known so far in front of it |
//! | `evaluate_response` | `deciding`: answer, or call tools? |
//! | `process_tools` | `executing` |
//! | `update_budgets` | `evaluating`: did it help, and may it go on? |
//! | any, while [`Effect::PrepareContext`](super::Effect::PrepareContext) has a summary written | `compressing` |
//! | `handle_completion`, and `finalize` while the answer is stored and told | `responding` |
//! | `finalize` and `terminate_error`, once their effects are performed | `done` |
//!
//! `terminate_error` is `done` from its beginning: nobody is to wait for an answer any more.

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
        /// What they brought is judged.
        Evaluating = "evaluating",
        /// What became too long is summarized.
        Compressing = "compressing",
        /// The answer is checked, stored and told.
        Responding = "responding",
        /// The turn is over.
        Done = "done",
    }
}

/// What the driver is at, where that says more than the state does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Activity {
    /// Performs what the state asks for.
    #[default]
    Performing,
    /// Has a summary written.
    Summarizing,
    /// Has performed everything.
    Finished,
}

impl Phase {
    /// The table above.
    #[must_use]
    pub fn of(state: State, activity: Activity) -> Self {
        match (state, activity) {
            (State::TerminateError, _) | (State::Finalize, Activity::Finished) => Self::Done,
            (_, Activity::Summarizing) => Self::Compressing,
            (State::Init | State::AwaitLlm, _) => Self::Planning,
            (State::EvaluateResponse, _) => Self::Deciding,
            (State::ProcessTools, _) => Self::Executing,
            (State::UpdateBudgets, _) => Self::Evaluating,
            (State::HandleCompletion | State::Finalize, _) => Self::Responding,
        }
    }
}
