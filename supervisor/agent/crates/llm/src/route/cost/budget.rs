//! The most that may be spent.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::route::money::Money;

/// The most that may be spent, in US dollars. Without a limit nothing is stopped.
///
/// A limit stops: it never chooses another model. A request whose estimate goes beyond what is left is not asked, so a limit can
/// be exceeded by as much as the true costs of the requests under way are above their estimates. What costs nothing is never
/// stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// For one session, from its beginning to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_session: Option<Money>,
    /// For all sessions together, from midnight to midnight UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Money>,
}

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
