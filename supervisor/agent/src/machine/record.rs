//! The record of a transition for logs, metrics and clients.

use serde::Serialize;

use super::{Activity, Event, Phase, State};
use crate::loop_context::LoopContext;

/// The record of a transition. The driver adds the time and the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransitionRecord {
    /// The previous state.
    pub from: State,
    /// The event.
    pub event: Event,
    /// The new state.
    pub to: State,
    /// The phase that clients are shown.
    pub phase: Phase,
    /// The number of questions to the model in this turn.
    pub iteration: u32,
    /// The use of each budget.
    pub budgets: BudgetUse,
}

/// What a turn has used and has left. Nothing is below 0: an overdrawn budget has 0 left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BudgetUse {
    /// Questions left.
    pub iterations_left: u32,
    /// Errors left for the tool that has the fewest.
    pub tool_errors_left: u32,
    /// Retries left for an answer that does not fit.
    pub retries_left: u32,
    /// Time used.
    pub elapsed_ms: u64,
    /// Time left.
    pub left_ms: u64,
    /// Tokens of all questions and answers, as the providers counted them.
    pub tokens: u64,
    /// Their cost, in millionths of a US dollar.
    pub micro_usd: u64,
    /// Money left; `None` without a limit.
    pub micro_usd_left: Option<u64>,
}

impl TransitionRecord {
    /// The record of a transition, with the context after it.
    #[must_use]
    pub fn of(from: State, event: Event, to: State, context: &LoopContext) -> Self {
        Self {
            from,
            event,
            to,
            phase: Phase::of(to, Activity::Performing),
            iteration: context.iteration(),
            budgets: context.budget_use(),
        }
    }
}
