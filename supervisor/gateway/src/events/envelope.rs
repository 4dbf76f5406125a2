//! What stands around every event.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ServerEvent;
use super::ids;

/// A message of the gateway: `{id, type, timestamp, payload}`, and a sequence if it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Envelope {
    /// The event's id; the same if it is sent again.
    pub id: String,
    /// Its type, with its payload.
    #[serde(flatten)]
    pub event: ServerEvent,
    /// When it happened, in milliseconds since 1970.
    pub timestamp: u64,
    /// Its place among the recorded events of its session: what `resume` goes on from. Absent if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

impl Envelope {
    /// Around an event that is not recorded, and happens now. A call's id is its event's id, too, so that a result can name it.
    pub(crate) fn now(event: ServerEvent, unix_ms: u64) -> Self {
        let id = match &event {
            ServerEvent::ToolCall(call) => call.id.clone(),
            _ => ids::new_message_id(),
        };
        Self { id, event, timestamp: unix_ms, sequence: None }
    }

    /// Its JSON.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("keys are texts and numbers are finite")
    }
}
