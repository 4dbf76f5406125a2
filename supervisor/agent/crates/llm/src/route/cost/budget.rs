//! Budgets.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use talon_agent_settings::Budget;

use crate::route::Money;

/// Which limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// [`Budget::per_session`].
    Session,
    /// [`Budget::per_day`].
    Day,
}

/// A request was not sent, since it would exceed a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverBudgetError {
    /// Which limit.
    pub limit: BudgetScope,
    /// The limit.
    pub budget: Money,
    /// The amount spent, including the estimates of requests in flight.
    pub spent: Money,
    /// The estimated cost of the request.
    pub estimate: Money,
}

impl std::error::Error for OverBudgetError {}

impl fmt::Display for OverBudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, budget, spent, estimate } = self;
        let (whose, what_to_do) = match limit {
            BudgetScope::Session => {
                ("this session's", "go on in a new session, or raise models.budget.per_session")
            }
            BudgetScope::Day => ("today's", "go on after midnight UTC, or raise models.budget.per_day"),
        };
        write!(
            f,
            "${spent} of {whose} budget of ${budget} are spent, and the next request would cost about ${estimate}: \
             {what_to_do}; free models and cheaper ones may still answer"
        )
    }
}
