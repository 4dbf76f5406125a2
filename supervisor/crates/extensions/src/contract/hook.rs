//! What a filter or a hook is asked.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The arguments of a filter, a request hook or a response hook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookRequest {
    /// The message: of filters and request hooks the person's, of response hooks the agent's answer.
    pub message: String,
    /// In which session it was sent.
    pub session: HookSession,
    /// What earlier hooks noted, as far as the entry lists the keys (`metadata`).
    pub metadata: BTreeMap<String, String>,
}

/// The session of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookSession {
    /// Its id.
    pub id: String,
    /// The number of the turn in it, from 1.
    pub turn: u64,
    /// Whose session it is.
    pub sender: String,
    /// The channel, such as `cli`.
    pub channel: String,
    /// The sub-agent whose task it is; empty for the agent itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subagent: String,
}

pub(super) fn sample() -> HookRequest {
    HookRequest {
        message: "Hello".to_owned(),
        session: HookSession {
            id: "01J00000000000000000000000".to_owned(),
            turn: 1,
            sender: "ada".to_owned(),
            channel: "cli".to_owned(),
            subagent: String::new(),
        },
        metadata: BTreeMap::new(),
    }
}
