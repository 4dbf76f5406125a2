//! Payloads of `channel.message`, `session.*`, `config.updated` and `shadow.*`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::agent;
use utoipa::ToSchema;

use super::ids::session_id;

/// A message that a session got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChannelMessageEvent {
    pub session_id: String,
    pub channel: String,
    /// Whose session it is in: of a group, `gw:CHANNEL/group:ID`.
    pub sender_id: String,
    /// Of a message in a group: what people call who said it.
    pub sender_name: Option<String>,
    pub text: String,
    /// Images and files that belong to it.
    pub media: Vec<MediaInfo>,
    /// Whether it was said in a group.
    pub is_group: bool,
    /// The channel's own id of the group.
    pub group_id: Option<String>,
    /// The client's own id of the message, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// An image or file of a message, without its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MediaInfo {
    /// What people call it; may be empty.
    pub name: String,
    /// Such as image/png, as its bytes tell.
    #[serde(rename = "type")]
    pub media_type: String,
    /// In bytes.
    pub size: u64,
    /// SHA-256 of the bytes, in hex.
    pub digest: String,
    /// Of an image, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Of an image, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
}

impl From<agent::MediaInfo> for MediaInfo {
    fn from(media: agent::MediaInfo) -> Self {
        let set = |pixels: u32| Some(pixels).filter(|pixels| *pixels > 0);
        Self {
            name: media.name,
            media_type: media.media_type,
            size: media.bytes,
            digest: media.digest,
            width: set(media.width),
            height: set(media.height),
        }
    }
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

/// What a watcher saw, before anything is decided about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShadowEvent {
    /// The watcher's id of it.
    pub id: String,
    /// file_changed, command, commit and the like.
    pub kind: String,
    /// Which detector found something; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// What it is about: the name of a file, or a command's first words.
    pub subject: String,
    /// What the detector found.
    pub finding: String,
    pub repository: String,
    /// commit, test_end, prompt or idle, if a piece of work ended with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<String>,
    /// In milliseconds since 1970, by the watcher's clock.
    pub occurred_at: u64,
}

impl From<agent::ShadowEvent> for ShadowEvent {
    fn from(event: agent::ShadowEvent) -> Self {
        let seen = event.observation.unwrap_or_default();
        let set = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            id: seen.id,
            kind: seen.kind,
            trigger: set(seen.trigger),
            subject: seen.subject,
            finding: seen.finding,
            repository: seen.repository,
            boundary: set(seen.boundary),
            occurred_at: seen.occurred_unix_ms,
        }
    }
}

/// A proposal that nobody asked for. Nothing acts before a person approves it.
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
    /// waiting, approved, dismissed, snoozed or expired
    pub state: String,
    pub sender_id: String,
    pub repository: String,
    /// In milliseconds since 1970.
    pub created_at: u64,
    pub expires_at: u64,
    /// Why it offers no act; absent if it offers one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_act: Option<String>,
    /// The session of its turn, once it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// When a snoozed one waits again, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<u64>,
    /// Who decided about it; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// In milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<u64>,
}

impl From<agent::Ghost> for ShadowGhost {
    fn from(ghost: agent::Ghost) -> Self {
        let set = |text: String| Some(text).filter(|text| !text.is_empty());
        let actions = ghost.actions.into_iter().map(|action| GhostAction {
            label: action.label,
            kind: action.r#type,
            payload: serde_json::from_str(&action.payload_json).ok(),
        });
        Self {
            id: ghost.id,
            trigger: ghost.trigger,
            observation: ghost.observation,
            proposal: ghost.proposal,
            confidence: ghost.confidence,
            actions: actions.collect(),
            state: ghost.state,
            sender_id: ghost.sender,
            repository: ghost.repository,
            created_at: ghost.created_unix_ms,
            expires_at: ghost.expires_unix_ms,
            no_act: set(ghost.no_act),
            session_id: set(ghost.session_id).map(|id| session_id(&id)),
            snoozed_until: ghost.snoozed_until_unix_ms,
            decided_by: set(ghost.decided_by),
            decided_at: ghost.decided_unix_ms,
        }
    }
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
