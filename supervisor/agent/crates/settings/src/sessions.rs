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
    /// What becomes of a message that comes while its session is in a turn, unless its client says otherwise. Holds for
    /// messages to a main session and for those that their client named; all others are refused.
    pub busy: BusyMode,
    /// The most messages of one session that wait. One more is refused.
    ///
    /// 16: more than people write while they wait for an answer.
    #[schemars(range(min = 1, max = 1000))]
    pub queue: u32,
}

/// What becomes of a message that comes while its session is in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BusyMode {
    /// It is refused.
    Refuse,
    /// It waits for the end of that turn.
    #[default]
    Queue,
    /// That turn is cancelled; what it did stays.
    Interrupt,
    /// It waits, and all that waits becomes one turn.
    Merge,
}

impl Default for SessionKeys {
    fn default() -> Self {
        let idle_after = TimeSpan::from_secs(30 * 60);
        Self { idle_after, retention_days: None, busy: BusyMode::default(), queue: 16 }
    }
}
