//! A session and its messages, as founded.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use talon_proto::agent;
use utoipa::ToSchema;

use crate::events::ThinkingLevel;
use crate::events::ids;
use crate::events::session::MediaInfo;
use crate::events::tool::ToolResultMetadata;
use crate::events::translate;

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Session {
    id: String,
    /// Whose it is.
    sender_id: String,
    channel: String,
    /// created (without a message), active or idle
    state: String,
    /// Absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message>>,
    /// With which the next page of messages is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    metadata: SessionMetadata,
    config: SessionConfig,
    /// What clients noted about it.
    labels: BTreeMap<String, String>,
    /// The beginning of its first message.
    title: String,
    /// idle, running, waiting (for an approval) or interrupted
    turn: String,
    /// In US dollars.
    cost: f64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionMetadata {
    /// In milliseconds since 1970.
    created_at: u64,
    last_active_at: u64,
    message_count: u64,
    /// The model that answered last.
    model: String,
}

/// What a session wants otherwise than the configuration says. `model` and `thinkingLevel` are absent where it is as configured, which is
/// decided for each turn: the model that answered last is in `metadata`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ThinkingLevel>)]
    thinking_level: Option<String>,
    /// Whether channels show arguments and results of calls.
    verbose_level: bool,
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: String,
    /// user, assistant, system or tool
    role: String,
    content: String,
    tool_calls: Vec<MessageToolCall>,
    tool_results: Vec<MessageToolResult>,
    /// Images and files that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    media: Vec<MediaInfo>,
    /// In milliseconds since 1970.
    timestamp: u64,
    /// Of a person's message: where it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    /// Of a person's message in a group: who said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_name: Option<String>,
    /// It stands for older messages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    summary: bool,
    /// What hooks made of a person's message, as the model was asked; of an answer, what the model had written before. Scope operate alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    hooked: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MessageToolCall {
    id: String,
    tool: String,
    args: Value,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MessageToolResult {
    id: String,
    tool: String,
    success: bool,
    output: String,
    metadata: ToolResultMetadata,
}

impl From<agent::Session> for Session {
    fn from(session: agent::Session) -> Self {
        let set = |text: String| Some(text).filter(|text| !text.is_empty());
        // Nobody said anything yet: as founded, whatever the agent calls it.
        let state = if session.messages == 0 && session.turn == "idle" {
            "created".to_owned()
        } else {
            session.state
        };
        Self {
            id: ids::session_id(&session.id),
            sender_id: session.sender,
            channel: session.channel,
            state,
            messages: None,
            next_cursor: None,
            metadata: SessionMetadata {
                created_at: session.created_unix_ms,
                last_active_at: session.updated_unix_ms,
                message_count: session.messages,
                model: session.active_model,
            },
            config: SessionConfig {
                model: set(session.model),
                thinking_level: set(session.thinking),
                verbose_level: session.verbose,
            },
            labels: session.metadata.into_iter().collect(),
            title: session.title,
            turn: session.turn,
            cost: translate::dollars(session.cost_pico_usd),
        }
    }
}

impl Session {
    /// A session with a page of its messages.
    pub(super) fn with_messages(answer: agent::GetSessionResponse) -> Self {
        let session = answer.session.unwrap_or_default();
        let of = |message| Message::of(&session.id, &session.channel, message);
        let messages = answer.messages.into_iter().map(of).collect();
        let next_cursor = Some(answer.next_page_token).filter(|next| !next.is_empty());
        Self { messages: Some(messages), next_cursor, ..Self::from(session) }
    }
}

impl Message {
    fn of(session: &str, channel: &str, message: agent::Message) -> Self {
        let set = |text: String| Some(text).filter(|text| !text.is_empty());
        let of_session = || (message.role == "user").then(|| channel.to_owned());
        let call = |call: agent::ToolCall| {
            let call = translate::tool_call(session, call);
            MessageToolCall { id: call.id, tool: call.tool, args: call.args }
        };
        let result = |result: agent::ToolResult| {
            let result = translate::tool_result(session, result);
            MessageToolResult {
                id: result.id,
                tool: result.tool,
                success: result.success,
                output: result.output,
                metadata: result.metadata,
            }
        };
        Self {
            id: ids::message_id(session, message.sequence),
            channel: set(message.channel).or_else(of_session),
            sender_name: set(message.sender_name),
            role: message.role,
            content: message.content,
            tool_calls: message.tool_calls.into_iter().map(call).collect(),
            tool_results: message.tool_results.into_iter().map(result).collect(),
            media: message.media.into_iter().map(MediaInfo::from).collect(),
            timestamp: message.unix_ms,
            summary: message.summary,
            hooked: message.hooked,
        }
    }
}
