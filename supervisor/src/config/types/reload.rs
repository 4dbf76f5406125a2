//! `reload`: changes while it runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the configuration is read anew. SIGHUP and `talon reload` always do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reload {
    /// Also when the config file changes.
    ///
    /// Off, so that nothing happens while a file is being edited. A file that is refused changes nothing, and
    /// is reported in the log, as an event and in `talon status`.
    pub watch: bool,
}
