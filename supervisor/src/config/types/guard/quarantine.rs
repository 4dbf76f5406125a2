//! `guard.quarantine`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::Duration;

/// When a plugin is quarantined because its answers keep containing control syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quarantine {
    /// How much neutralized control syntax within `window` quarantines a plugin. Control and invisible
    /// characters and the operator's own patterns do not count.
    ///
    /// 20 is more than a page about prompt formats holds, and less than an attack that varies its spelling
    /// needs.
    #[serde(default = "marks")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub marks: u32,
    /// The time within which they count.
    ///
    /// 10 minutes, so that what a plugin reads in a day of ordinary work does not add up.
    #[serde(default = "window")]
    pub window: Duration,
}

fn marks() -> u32 {
    20
}

fn window() -> Duration {
    Duration::from_secs(600)
}
