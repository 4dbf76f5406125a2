//! What logs, metrics and clients get of a transition.

use serde::Serialize;

use super::{Activity, Event, Phase, State};
use crate::loop_context::LoopContext;

/// One transition. The driver adds when it was and to which turn it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Where it began.
    pub from: State,
    /// What set it off.
    pub event: Event,
    /// Where it ended.
    pub to: State,
    /// What clients are shown there.
    pub phase: Phase,
    /// How often the model was asked in this turn.
    pub iteration: u32,
    /// How much of each budget is used.
    pub budgets: BudgetUse,
}

/// What a turn has used and what it has left. Nothing is ever below 0: what is left of something overdrawn is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BudgetUse {
    /// How often the model may still be asked.
    pub iterations_left: u32,
    /// The fewest errors that any tool has left.
    pub tool_errors_left: u32,
    /// How often an answer that does not fit may still be sent back.
    pub retries_left: u32,
    /// Time used.
    pub elapsed_ms: u64,
    /// Time left.
    pub left_ms: u64,
    /// Tokens of all questions and answers, as the providers counted them.
    pub tokens: u64,
    /// What they cost, in millionths of a US dollar.
    pub micro_usd: u64,
    /// What may still be spent; `None` without a limit.
    pub micro_usd_left: Option<u64>,
}

impl Record {
    /// Of a transition that was taken, with the context as it is behind it.
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
