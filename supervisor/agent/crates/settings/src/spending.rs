//! `models.budget`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Money;

/// The most that may be spent, in US dollars. Default: no limit.
///
/// A request whose estimate exceeds the rest of the budget is not sent; a limit never chooses another model.
/// A limit can be exceeded by the amount by which the true costs of the running requests exceed their
/// estimates. Requests that cost nothing are always sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// For one session in total.
    #[serde(default)]
    pub per_session: Option<Money>,
    /// For all sessions together in one day, from midnight to midnight UTC.
    #[serde(default)]
    pub per_day: Option<Money>,
}
