//! The record of a transition for logs, metrics and clients.

use serde::Serialize;

use super::{Activity, Event, Phase, State};
use crate::budget::BudgetUse;
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
