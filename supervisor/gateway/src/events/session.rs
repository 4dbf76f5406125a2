//! Payloads of `channel.message`, `session.*`, `config.updated` and `shadow.ghost`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A message that a session got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChannelMessageEvent {
    pub session_id: String,
    pub channel: String,
    pub sender_id: String,
    pub sender_name: Option<String>,
    pub text: String,
    /// The client's own id of the message, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// A session began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionCreated {
    pub session_id: String,
    pub sender_id: String,
    pub channel: String,
    /// The client's message that began it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
}

/// Something became of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionEvent {
    pub session_id: String,
}

/// The configuration changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigUpdated {
    /// Keys whose value changed.
    pub keys: Vec<String>,
    /// Of these, those that hold after the next start.
    pub needs_restart: Vec<String>,
}

/// A proposal that nobody asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShadowGhost {
    pub id: String,
    /// What caused it.
    pub trigger: String,
    /// What was noticed.
    pub observation: String,
    /// What is suggested.
    pub proposal: String,
    /// low, medium or high
    pub confidence: String,
    pub actions: Vec<GhostAction>,
}

/// A button of a proposal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GhostAction {
    pub label: String,
    /// approve, dismiss or custom
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}
