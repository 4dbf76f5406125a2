//! `events` of a plugin: what it may tell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most events that any plugin may tell a minute: some that a disk can sync beside everything else.
pub(crate) const MAX_EVENTS_PER_MINUTE: u32 = 60_000;

/// What a plugin may tell of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EventGrant {
    /// How many a minute are taken; as many may come at once.
    ///
    /// 60. What is more waits in the plugin, and `talon status` says so. From 1 to 60,000.
    #[schemars(range(min = 1, max = 60_000))]
    pub per_minute: u32,
}

impl Default for EventGrant {
    fn default() -> Self {
        Self { per_minute: 60 }
    }
}
