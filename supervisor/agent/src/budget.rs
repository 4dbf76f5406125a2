//! The limits of a turn, and the texts about them.
//!
//! [`LoopContext::check_budgets`](crate::loop_context::LoopContext::check_budgets) compares a turn with its
//! limits.

use std::num::NonZeroU32;
use std::time::Duration;

mod limit;
mod usage;
mod warning;

pub use limit::Limit;
pub use usage::BudgetUse;
pub use warning::{Warning, note};

/// The limits of a turn, from one message of a person to its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// Questions to the model: 10, the founding number. More seldom help, and each carries the whole context.
    pub iterations: NonZeroU32,
    /// Calls of one answer that run, concurrently: 10. Further calls of the answer are rejected, and the
    /// model is notified.
    pub calls_at_once: NonZeroU32,
    /// Errors of one tool: 8. A success cancels one of them ([`crate::loop_context::ToolStats`]).
    pub tool_errors: NonZeroU32,
    /// Consecutive successes of one tool with the same arguments and result: 3.
    pub identical_successes: NonZeroU32,
    /// How often in a row a batch of calls, or a cycle of up to three batches, may return the same: 3.
    pub no_progress: NonZeroU32,
    /// How often an answer that does not fit the asked schema goes back to the model: 2.
    pub structured_retries: u32,
    /// How often an answer that reached the model's limit of tokens is continued: 3, which is four times what
    /// the model may say at once.
    pub continuations: u32,
    /// Questions of the model to the person: 3. 0 where no person can answer.
    pub clarifications: u32,
    /// The time from message to answer: 10 minutes, which is ten questions of half a minute and as much for
    /// tools.
    pub wall_time: Duration,
    /// The cost of all questions, in millionths of a US dollar: 1 $, about ten times the price of ten
    /// questions of 6,000 tokens on a mid-tier model. `None` is no limit. Models without a known price are
    /// not counted.
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
            continuations: 3,
            clarifications: 3,
            wall_time: Duration::from_secs(600),
            micro_usd: Some(1_000_000),
        }
    }
}

/// The result of comparing a turn with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetCheck {
    /// The turn may continue; the model should see these warnings.
    Within(Vec<Warning>),
    /// The turn has to end.
    Exceeded(Limit),
}

/// The result of each call beyond [`Budgets::calls_at_once`].
#[must_use]
pub fn over_limit_message(budgets: &Budgets) -> String {
    format!(
        "not run: an answer may call {} tools at once, and this call stood behind them; call it again now if it is still needed",
        budgets.calls_at_once
    )
}
