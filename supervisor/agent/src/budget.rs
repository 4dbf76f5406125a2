//! The limits of a turn, and whether one is reached.
//!
//! [`judge`] is called between two questions to the model, and uses the context alone. Before a limit ends a turn, the
//! model gets a warning ([`Warning`]), so that it can change course or answer with what it has. Only a limit of 1
//! leaves no room for one.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::loop_context::LoopContext;
use crate::progress;

mod limit;
mod warning;

pub use limit::Limit;
pub use warning::{Warning, note};

/// The limits of a turn, from one message of a person to its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// Questions to the model: 10, the founding number. More seldom help, and each carries the whole context.
    pub iterations: NonZeroU32,
    /// Calls of one answer that run, concurrently: 10. Further calls of the answer are rejected, and the model is
    /// notified.
    pub calls_at_once: NonZeroU32,
    /// Errors of one tool: 8. A success cancels one of them ([`crate::loop_context::Tally`]).
    pub tool_errors: NonZeroU32,
    /// Consecutive successes of one tool with the same arguments and result: 3.
    pub identical_successes: NonZeroU32,
    /// How often in a row a batch of calls, or a cycle of up to three batches, may return the same: 3.
    pub no_progress: NonZeroU32,
    /// How often an answer that does not fit the asked schema goes back to the model: 2.
    pub structured_retries: u32,
    /// The time from message to answer: 10 minutes, which is ten questions of half a minute and as much for tools.
    pub wall_time: Duration,
    /// The cost of all questions, in millionths of a US dollar: 1 $, about ten times the price of ten questions of
    /// 6,000 tokens on a mid-tier model. `None` is no limit. Models without a known price are not counted.
    pub micro_usd: Option<u64>,
}

impl Default for Budgets {
    fn default() -> Self {
        const fn number(n: u32) -> NonZeroU32 {
            NonZeroU32::new(n).expect("the defaults are not 0")
        }
        Self {
            iterations: number(10),
            calls_at_once: number(10),
            tool_errors: number(8),
            identical_successes: number(3),
            no_progress: number(3),
            structured_retries: 2,
            wall_time: Duration::from_secs(600),
            micro_usd: Some(1_000_000),
        }
    }
}

/// The result of [`judge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetCheck {
    /// The turn may continue; the model should see these warnings.
    Within(Vec<Warning>),
    /// The turn has to end.
    Exceeded(Limit),
}

/// Whether the model may be asked again after a batch of calls.
#[must_use]
pub fn judge(context: &LoopContext) -> BudgetCheck {
    let budgets = context.budgets();
    let mut warnings = Vec::new();
    for (tool, tally) in context.tool_stats() {
        let successes = tally.identical_successes();
        if successes >= budgets.identical_successes.get() {
            return BudgetCheck::Exceeded(Limit::IdenticalSuccesses { tool: tool.clone(), times: successes });
        }
        if tally.errors() >= budgets.tool_errors.get() {
            return BudgetCheck::Exceeded(Limit::ToolErrors { tool: tool.clone(), errors: tally.errors() });
        }
        // Only tools of the last batch: repeating a warning after each batch would be noise.
        if !context.just_used(tool) {
            continue;
        }
        if successes > 1 && successes + 1 == budgets.identical_successes.get() {
            warnings.push(Warning::IdenticalSuccesses { tool: tool.clone(), times: successes });
        }
        if tally.errors() > 0 && tally.errors() + 1 == budgets.tool_errors.get() {
            warnings.push(Warning::ToolErrors { tool: tool.clone(), errors: tally.errors() });
        }
    }
    let repeats = progress::repeats(context.history());
    if repeats >= budgets.no_progress.get() {
        return BudgetCheck::Exceeded(Limit::NoProgress { times: repeats });
    }
    if let Some(limit) = exhausted_limit(context) {
        return BudgetCheck::Exceeded(limit);
    }
    if context.iterations_left() == 0 {
        return BudgetCheck::Exceeded(Limit::Iterations { most: budgets.iterations.get() });
    }
    // One warning is enough where a single tool makes no progress.
    let told = warnings.iter().any(|warning| matches!(warning, Warning::IdenticalSuccesses { .. }));
    if !told && repeats > 1 && repeats + 1 == budgets.no_progress.get() {
        warnings.push(Warning::NoProgress { times: repeats });
    }
    if context.iterations_left() == 1 {
        warnings.push(Warning::LastIteration);
    }
    warnings.extend(warning::spending_warnings(context));
    BudgetCheck::Within(warnings)
}

/// The limit of time or money that is reached. It also ends a turn that waits for a model or a tool: then the driver
/// sends [`crate::loop_context::Failure::Limit`].
#[must_use]
pub fn exhausted_limit(context: &LoopContext) -> Option<Limit> {
    let (budgets, spent) = (context.budgets(), context.spent());
    if spent.elapsed >= budgets.wall_time {
        return Some(Limit::WallTime { most: budgets.wall_time });
    }
    budgets.micro_usd.filter(|most| spent.micro_usd >= *most).map(|most| Limit::Cost { most_micro_usd: most })
}

/// The result of each call beyond [`Budgets::calls_at_once`].
#[must_use]
pub fn over_limit_message(budgets: &Budgets) -> String {
    format!(
        "not run: an answer may call {} tools at once, and this call stood behind them; call it again now if it is still needed",
        budgets.calls_at_once
    )
}

#[cfg(test)]
mod tests;
