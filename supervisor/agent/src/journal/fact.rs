//! What happened in a session beside what was said in its turns.

use prost::Message as _;
use serde::{Deserialize, Serialize};
use talon_proto::agent;

/// What happened in a session and is for clients alone: no model sees it, and no search finds it. It is in the journal
/// for its place among the other entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum SessionFact {
    /// A call or a question waits for a person, was decided, or expired.
    Approval {
        /// Its turn.
        turn: u64,
        /// An encoded [`agent::Approval`], in hex.
        approval: String,
    },
    /// A client's message became a part of the one that began this turn.
    Merged {
        /// The turn.
        turn: u64,
        /// The client's own name of it.
        client_id: String,
    },
    /// Nobody wrote to it for a while.
    Idle,
    /// It is used again, without a message.
    Resumed,
    /// Somebody set these fields of it.
    Updated {
        /// Their names on the wire.
        fields: Vec<String>,
    },
}

impl SessionFact {
    /// What became of an approval.
    #[must_use]
    pub fn approval(turn: u64, approval: &agent::Approval) -> Self {
        Self::Approval { turn, approval: hex::encode(approval.encode_to_vec()) }
    }

    /// What happens once has a key, so that it is noted once, however often an interrupted turn comes back to it.
    pub(super) fn key(&self) -> Option<String> {
        let approval = match self {
            Self::Merged { client_id, .. } => return Some(request_key(client_id)),
            Self::Approval { approval, .. } => decode_approval(approval)?,
            Self::Idle | Self::Resumed | Self::Updated { .. } => return None,
        };
        let stage = if approval.state == "pending" { "asked" } else { "decided" };
        Some(format!("approval/{}/{stage}", approval.id))
    }
}

/// The key of the message that a client gave this name.
pub(super) fn request_key(client_id: &str) -> String {
    format!("ask/{client_id}")
}

/// Hex that the journal did not write is no approval.
pub(super) fn decode_approval(hex: &str) -> Option<agent::Approval> {
    agent::Approval::decode(&*hex::decode(hex).ok()?).ok()
}
