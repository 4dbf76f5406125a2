//! `events`: what is kept for those who want to be told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::{ByteSize, Duration};

/// What happened that an operator wants to be told of (a plugin failed, a configuration was refused), numbered and kept in
/// `events` in `state.data_dir`, so that a notification survives restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Events {
    /// The most bytes that are kept. At the bound the oldest go, an eighth at a time.
    ///
    /// 8 MiB, some ten thousand events. The agent is told of a gap if it had not taken them over. From 1 MiB to 1 GiB.
    pub max_bytes: ByteSize,
    /// The most events that are kept, as with `max_bytes`.
    ///
    /// 10000, which is weeks of a machine in trouble.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub max_events: u32,
    /// The time within which events of one kind and severity about one plugin become one, which says how many it stands for. The first comes at
    /// once. 0 combines nothing.
    ///
    /// One minute: a plugin that crashes all the time neither fills the log nor a telephone.
    pub window: Duration,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            max_bytes: ByteSize::mib(8),
            max_events: 10_000,
            window: Duration::from(std::time::Duration::from_secs(60)),
        }
    }
}
