//! `agent.groups`: conversations of several people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group on a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GroupKeys {
    /// The senders who may decide what waits for approval in it, as `gw:CHANNEL/ID` or as `agent.identities` names them. Nobody else
    /// in the group may.
    #[schemars(example = ["gw:telegram/12345"])]
    pub approvers: Vec<String>,
}
