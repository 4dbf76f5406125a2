//! How much of its budgets a turn has used.

use serde::Serialize;

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
