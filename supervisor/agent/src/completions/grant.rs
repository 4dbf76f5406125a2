//! What the operator grants a plugin.

use std::time::Duration;

use talon_proto::agent::{AttachModel, OwnBudget};

/// The name that leaves the choice to the router.
pub(super) const AUTO: &str = "auto";

/// What the operator grants a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    /// The models, the default first. None: the grant was taken back while the plugin runs.
    pub(super) aliases: Vec<String>,
    pub(super) max_calls: u32,
    pub(super) max_tokens: u32,
    pub(super) timeout: Duration,
    pub(super) concurrency: usize,
    /// What it may ask without a call of a turn.
    pub(super) own_budget: Option<OwnBudget>,
}

impl From<AttachModel> for Grant {
    fn from(attach: AttachModel) -> Self {
        Self {
            aliases: attach.aliases,
            max_calls: attach.max_calls,
            max_tokens: attach.max_tokens,
            timeout: Duration::from_millis(attach.timeout_ms),
            // A process whose grant was taken back has no numbers.
            concurrency: usize::try_from(attach.concurrency).unwrap_or(usize::MAX).max(1),
            own_budget: attach.own_budget,
        }
    }
}
