//! `models.budget`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Money;

/// The most that may be spent, in US dollars. Without a limit nothing is stopped.
///
/// A limit stops: it never chooses another model. A request whose estimate goes beyond what is left is not asked, so a limit can
/// be exceeded by as much as the true costs of the requests under way are above their estimates. What costs nothing is never
/// stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// For one session, from its beginning to its end.
    #[serde(default)]
    pub per_session: Option<Money>,
    /// For all sessions together, from midnight to midnight UTC.
    #[serde(default)]
    pub per_day: Option<Money>,
}
