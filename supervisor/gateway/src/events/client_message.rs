//! What clients send over WebSocket.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::agent::UpdateSessionRequest;
use utoipa::ToSchema;

use super::ThinkingLevel;

/// The longest id of a message.
pub(crate) const MAX_ID_BYTES: usize = 128;
/// The most sessions that one `resume` names.
pub(crate) const MAX_CURSORS: usize = 1024;
/// How much of an error of the JSON reader is repeated, in bytes: it may show a piece of what was sent.
const MAX_SHOWN_BYTES: usize = 300;

/// A message of a client, by its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientMessage {
    /// What somebody says.
    ChannelMessage(ChannelMessage),
    /// A person's decision about a call.
    ConfirmationAnswer(ConfirmationAnswer),
    /// A person's answer to a question.
    ClarificationAnswer(ClarificationAnswer),
    /// Follow sessions from where an earlier connection ended.
    Resume(Resume),
    /// End the turn that a session is in.
    TurnCancel(TurnCancel),
    /// Change what a session wants.
    SessionUpdate(SessionUpdate),
}

impl ClientMessage {
    /// Every type.
    pub(crate) const TYPES: [&'static str; 6] = [
        "channel.message",
        "confirmation.answer",
        "clarification.answer",
        "resume",
        "turn.cancel",
        "session.update",
    ];
}

/// What somebody says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChannelMessage {
    /// The token's own channel, or absent.
    pub channel: Option<String>,
    /// Who says it: with a token of the scope `channel`, a sender of it; otherwise the caller, or absent.
    pub sender_id: Option<String>,
    /// What people call the sender. Models see it in groups.
    pub sender_name: Option<String>,
    /// At most 256 KiB.
    pub text: String,
    /// Files that belong to it.
    pub media: Option<Vec<MediaFile>>,
    /// Whether it was said in a group.
    #[serde(default)]
    pub is_group: bool,
    /// The group, with `isGroup`.
    pub group_id: Option<String>,
    /// Whether the channel marks it as for the agent. In a group only what is marked, or names the agent, is
    /// (`gateway.routing`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mentioned: Option<bool>,
    /// The session; absent: the sender's main one, or the group's.
    pub session_id: Option<String>,
}

/// A file of a message. Its type is told by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MediaFile {
    /// Its bytes, in base64.
    pub data: String,
    /// What people call it.
    #[serde(default)]
    pub name: String,
}

/// A person's decision about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ConfirmationAnswer {
    /// `confirmation.request`'s id.
    pub id: String,
    pub allow: bool,
    /// `confirmation.request`'s digest: nothing else is approved.
    pub digest: String,
    /// With a denial: told to the model. At most 500 bytes.
    #[serde(default)]
    pub reason: String,
    /// Who decides: with a token of the scope `channel`, a sender of it; otherwise absent.
    pub sender_id: Option<String>,
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClarificationAnswer {
    /// `clarification.request`'s id.
    pub id: String,
    /// At most 16 KiB. Null: nobody wants to answer.
    pub answer: Option<String>,
    /// As in `confirmation.answer`.
    pub sender_id: Option<String>,
}

/// Follow sessions from where an earlier connection ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Resume {
    /// At most 1024.
    pub cursors: Vec<SessionCursor>,
    /// Sessions without a cursor are told from this time on: the timestamp of the last event that was seen, in milliseconds since 1970. Absent:
    /// from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// The last event of a session that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SessionCursor {
    pub session_id: String,
    /// Its `sequence`; 0 for all events of the session.
    pub after: u64,
}

/// End the turn that a session is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TurnCancel {
    pub session_id: String,
    /// Whose session it is: with a token of the scope `channel`, a sender of it; otherwise absent.
    pub sender_id: Option<String>,
}

/// Change what a session wants; `session.updated` tells everybody who follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SessionUpdate {
    pub session_id: String,
    pub change: SessionChange,
    /// Whose session it is: with a token of the scope `channel`, a sender of it; otherwise absent.
    pub sender_id: Option<String>,
}

/// What of a session changes; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SessionChange {
    /// provider/name or alias; empty: as configured.
    pub model: Option<String>,
    pub thinking_level: Option<ThinkingLevel>,
    /// Whether channels show arguments and results of calls.
    pub verbose_level: Option<bool>,
    /// Entries to set; an empty value removes one.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

impl SessionChange {
    /// What the agent is asked for this session.
    pub(crate) fn of(self, session_id: &str) -> UpdateSessionRequest {
        UpdateSessionRequest {
            session_id: session_id.to_owned(),
            model: self.model,
            thinking: self.thinking_level.map(ThinkingLevel::word),
            verbose: self.verbose_level,
            metadata: self.labels,
            ..UpdateSessionRequest::default()
        }
    }
}

/// Why a message is not understood. The connection stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientMessageError {
    /// The message's id, as far as it could be read.
    pub reply_to: Option<String>,
    /// A word for programs: `malformed`, `unknown_type` or `bad_payload`.
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
}

#[derive(Deserialize)]
struct RawEnvelope {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    // Read to be held to its type, and not used: the clock of a client is its own.
    #[serde(default, rename = "timestamp")]
    _timestamp: Option<u64>,
    payload: Value,
}

/// Reads a message: its id, and what it says.
///
/// # Errors
/// [`ClientMessageError`]
pub(crate) fn parse(text: &str) -> Result<(String, ClientMessage), ClientMessageError> {
    let malformed = |error: &serde_json::Error| ClientMessageError {
        reply_to: None,
        reason: "malformed",
        message: format!("a message is one JSON object {{id, type, timestamp, payload}}: {}", shown(error)),
    };
    // First the bounds, then the types: what nests deep, or has a key twice, is read no further.
    talon_strict_json::check(text).map_err(|error| malformed(&error))?;
    let envelope: RawEnvelope = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    let RawEnvelope { id, kind, payload, .. } = envelope;
    if id.is_empty() || id.len() > MAX_ID_BYTES {
        let message = format!("a message's id has 1 to {MAX_ID_BYTES} bytes: a nanoid fits");
        return Err(ClientMessageError { reply_to: None, reason: "malformed", message });
    }
    let message = match kind.as_str() {
        "channel.message" => read(payload).map(ClientMessage::ChannelMessage),
        "confirmation.answer" => read(payload).map(ClientMessage::ConfirmationAnswer),
        "clarification.answer" => read(payload).map(ClientMessage::ClarificationAnswer),
        "resume" => read(payload).map(ClientMessage::Resume),
        "turn.cancel" => read(payload).map(ClientMessage::TurnCancel),
        "session.update" => read(payload).map(ClientMessage::SessionUpdate),
        _ => {
            let message = format!("there is no such type: clients send {}", ClientMessage::TYPES.join(", "));
            return Err(ClientMessageError { reply_to: Some(id), reason: "unknown_type", message });
        }
    };
    match message {
        Ok(ClientMessage::Resume(resume)) if resume.cursors.len() > MAX_CURSORS => {
            let message = format!(
                "a resume names at most {MAX_CURSORS} sessions, as many as a connection goes on with: name the others on another connection"
            );
            Err(ClientMessageError { reply_to: Some(id), reason: "bad_payload", message })
        }
        Ok(message) => Ok((id, message)),
        Err(error) => {
            let message = format!("the payload does not fit its type: {}", shown(&error));
            Err(ClientMessageError { reply_to: Some(id), reason: "bad_payload", message })
        }
    }
}

fn read<T: DeserializeOwned>(payload: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(payload)
}

/// An error of the JSON reader, cut to a length that fits an error of ours.
pub(crate) fn shown(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES));
    text
}

/// The arguments of a call as they are shown: an object, or the text that is none.
pub(crate) fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) | Err(_) => Value::String(text.to_owned()),
    }
}
