//! `models` of a plugin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_agent_settings::Money;
use talon_plugin_config::units::Duration;

/// The most completions of one call that can be granted: a plugin that needs more is an agent of its own.
pub(crate) const MAX_CALLS: u32 = 10_000;
/// The most completions at once that can be granted to one plugin.
pub(crate) const MAX_CONCURRENCY: u32 = 64;
/// The most names in `allow`: as many as a plugin can choose among by name.
pub(crate) const MAX_ALLOWED: usize = 32;

/// The language models that a plugin may ask, over a socket of its own, and how much.
///
/// A completion is charged to the turn that caused the plugin's call, and keeps the turn's rules: its pinned
/// model, `local_only`, its budget. Without tools, sessions or memory: texts go out, a text comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelGrant {
    /// The models, by alias, name or provider/name as in `models.catalog`; `auto` leaves the choice to the
    /// router, which falls back to other models as for turns. The first one is what a plugin gets that names
    /// none. At most 32.
    #[schemars(example = serde_json::json!(["auto"]))]
    pub allow: Vec<String>,
    /// How many completions one call of the plugin may cause. One more is refused.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(default = "max_calls")]
    pub max_calls: u32,
    /// How many tokens one answer may have; a longer one is cut.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(default = "max_tokens")]
    pub max_tokens: u32,
    /// How long one completion may take, with its wait for a place, its retries and fallbacks; the call and its turn may
    /// end it earlier.
    #[serde(default = "timeout")]
    pub timeout: Duration,
    /// How many completions of the plugin run at once. Four times as many more wait; beyond that they are
    /// refused, and may be tried again.
    #[schemars(range(min = 1, max = 64))]
    #[serde(default = "concurrency")]
    pub concurrency: u32,
    /// What it may ask without a call of a turn in flight: in a task of its own, in a job, for a person's `talon
    /// call`. Nothing unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_budget: Option<OwnBudget>,
}

/// What a plugin may ask on its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnBudget {
    /// The most cost of one day, from midnight to midnight UTC, in dollars. It counts against
    /// `models.budget.per_day` as well.
    #[schemars(example = &"0.50")]
    pub per_day: Money,
    /// The most completions of one day: models that cost nothing are asked no more than that.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(default = "calls_per_day")]
    pub calls_per_day: u32,
}

/// 10: a few steps of a tool, far from a loop.
const fn max_calls() -> u32 {
    10
}

/// 4096: some pages.
const fn max_tokens() -> u32 {
    4096
}

/// One minute, as long as a provider's slow answer takes.
fn timeout() -> Duration {
    std::time::Duration::from_secs(60).into()
}

/// 4: a provider's limit is shared with the turns.
const fn concurrency() -> u32 {
    4
}

/// 1,000: one every 86 seconds.
const fn calls_per_day() -> u32 {
    1000
}
