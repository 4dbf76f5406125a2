//! The most that may be spent.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use talon_agent_settings::Budget;

use crate::route::Money;

/// Which limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// [`Budget::per_session`].
    Session,
    /// [`Budget::per_day`].
    Day,
}

/// A request was not asked, since it would go beyond a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverBudget {
    /// Which limit.
    pub limit: Limit,
    /// How much it is.
    pub budget: Money,
    /// What is spent of it, with what requests that are under way are expected to cost.
    pub spent: Money,
    /// What the request would cost.
    pub estimate: Money,
}

impl std::error::Error for OverBudget {}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, budget, spent, estimate } = self;
        let (whose, what_to_do) = match limit {
            Limit::Session => {
                ("this session's", "go on in a new session, or raise models.budget.per_session")
            }
            Limit::Day => ("today's", "go on after midnight UTC, or raise models.budget.per_day"),
        };
        write!(
            f,
            "${spent} of {whose} budget of ${budget} are spent, and the next request would cost about ${estimate}: \
             {what_to_do}; free models and cheaper ones may still answer"
        )
    }
}
