//! `guard.breaker`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::Duration;

/// When a plugin's calls are refused because it keeps failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breaker {
    /// How many host faults in a row, within `window`, open the breaker.
    ///
    /// 5 is more than one crash takes down with it when a few calls are in flight, and few enough to spare
    /// the sixth caller a timeout.
    #[schemars(range(min = 1, max = 1000))]
    pub failures: u32,
    /// The time within which the faults count.
    ///
    /// A minute tells a plugin that is down from one that fails now and then.
    pub window: Duration,
    /// How long calls are refused before one is let through to try.
    ///
    /// 10 seconds are about what a restart with its backoff takes. If the trial call succeeds, the breaker
    /// closes. At most a day.
    pub open_for: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures: 5, window: Duration::from_secs(60), open_for: Duration::from_secs(10) }
    }
}
