//! `user`: a supervisor that `talon ask` and `talon chat` start for one user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::Duration;

/// A supervisor that `talon ask` or `talon chat` starts for one user, because none is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct User {
    /// How long it runs on without a client or a call; `0s` for ever.
    ///
    /// 30 minutes: longer than a pause between two questions, and short enough that no plugin runs on for a day. A supervisor that
    /// was started otherwise never ends for lack of work.
    pub idle_exit: Duration,
}

impl Default for User {
    fn default() -> Self {
        Self { idle_exit: Duration::from_secs(30 * 60) }
    }
}
