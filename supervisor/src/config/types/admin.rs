//! `admin`: health and metrics for machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `admin.sock` in `runtime_dir`: HTTP for monitoring. `/healthz`, `/readyz` and `/metrics`; nothing can be
/// changed there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Admin {
    /// Whether there is such a socket.
    pub enabled: bool,
    /// The group that owns it, by name, and may read from it, besides root and the supervisor's own user.
    ///
    /// Without it as `host.group`.
    #[schemars(example = &"prometheus")]
    pub group: Option<String>,
}

impl Default for Admin {
    fn default() -> Self {
        Self { enabled: true, group: None }
    }
}
