//! `agent.sessions`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TimeSpan;

/// How long sessions are active, and how long they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionKeys {
    /// How long after it was last written to a session is idle. The next message makes it active again; nothing is
    /// lost. Checked once a minute.
    ///
    /// 30m: long enough to read an answer or have lunch, and short enough that "active" means that somebody is there.
    pub idle_after: TimeSpan,
    /// After how many days without a message a session is deleted, with its turns, costs and rules. Memories stay.
    /// Checked once an hour; a turn that runs or waits keeps its session. Default: sessions are stored until somebody
    /// deletes them.
    #[schemars(range(min = 1, max = 36_500))]
    pub retention_days: Option<u32>,
}

impl Default for SessionKeys {
    fn default() -> Self {
        Self { idle_after: TimeSpan::from_secs(30 * 60), retention_days: None }
    }
}
