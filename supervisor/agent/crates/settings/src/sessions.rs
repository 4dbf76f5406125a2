//! `agent.sessions`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RetentionPeriod, TimeSpan};

/// How long sessions are active, and how long they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionKeys {
    /// How long after it was last written to a session is idle. The next message makes it active again; nothing is
    /// lost. Checked once a minute.
    ///
    /// 30m: long enough to read an answer or have lunch, and short enough that "active" means that somebody is there.
    pub idle_after: TimeSpan,
    /// How long after its last message a session is deleted, with its turns, costs and rules, from `1h` to `36500d`. Memories
    /// stay. Checked once an hour; a turn that runs or waits keeps its session. Default: sessions are stored until somebody
    /// deletes them.
    #[schemars(example = &"90d")]
    pub delete_after: Option<RetentionPeriod>,
    /// Whether such a session is written to a file before, with its images and files: below `agent/exports` in
    /// `state.data_dir`, where `talon import` reads it. One that cannot be written is not deleted. What somebody else deletes,
    /// such as `talon forget`, is never written.
    pub export: bool,
    /// The most bytes of these files. Beyond it no more sessions are written or deleted, until some files are moved elsewhere.
    ///
    /// 1 GiB: some ten thousand long conversations without images.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776_u64))]
    pub export_bytes: u64,
    /// The most sessions of one sender. One more is refused, until some are deleted; the main session always has room.
    ///
    /// 10000: 27 a day for a year. `delete_after` makes room by itself.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub per_sender: u32,
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
        let (busy, export_bytes) = (BusyMode::default(), 1 << 30);
        Self {
            idle_after,
            delete_after: None,
            export: true,
            export_bytes,
            per_sender: 10_000,
            busy,
            queue: 16,
        }
    }
}
