//! The payloads of the bus, as clients read them.

use std::collections::BTreeMap;

use serde::Serialize;
use talon_proto::agent;
use utoipa::ToSchema;

use super::super::calls::Layer;
use crate::events::ids::tool_call_id;

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// A message that a session got.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusMessageIn {
    turn: u64,
    /// Where it comes from.
    channel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_name: Option<String>,
    /// The client's own id of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    /// At most 2 KiB of it; the session has all.
    text: String,
    left_out_bytes: u64,
    /// How many images and other files come with it.
    media: u32,
}

impl From<(agent::MessageInbound, &str)> for BusMessageIn {
    fn from((update, _): (agent::MessageInbound, &str)) -> Self {
        Self {
            turn: update.turn,
            channel: update.channel,
            sender_name: some(update.sender_name),
            client_id: some(update.client_id),
            text: update.text,
            left_out_bytes: update.left_out_bytes,
            media: update.media,
        }
    }
}

/// An answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusMessageOut {
    turn: u64,
    channel: String,
    /// At most 2 KiB of it; the session has all.
    text: String,
    left_out_bytes: u64,
    /// As provider/name.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

impl From<(agent::MessageOutbound, &str)> for BusMessageOut {
    fn from((update, _): (agent::MessageOutbound, &str)) -> Self {
        Self {
            turn: update.turn,
            channel: update.channel,
            text: update.text,
            left_out_bytes: update.left_out_bytes,
            model: some(update.model),
        }
    }
}

/// A call that a model wants.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusToolExecute {
    turn: u64,
    call_id: String,
    /// The name under which the model called it.
    tool: String,
    /// Absent for a tool that does not exist, as the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// JSON: at most 2 KiB of it.
    arguments: String,
    left_out_bytes: u64,
    /// Whose call it is; absent for the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
}

impl From<(agent::ToolExecute, &str)> for BusToolExecute {
    fn from((update, session): (agent::ToolExecute, &str)) -> Self {
        Self {
            turn: update.turn,
            call_id: tool_call_id(session, &update.call_id),
            tool: update.tool,
            plugin: some(update.plugin),
            action: some(update.action),
            arguments: update.arguments,
            left_out_bytes: update.left_out_bytes,
            subagent: some(update.subagent),
        }
    }
}

/// A call with its result.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusToolComplete {
    turn: u64,
    call_id: String,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    /// succeeded, failed, not_offered, over_the_limit or handed_over
    outcome: String,
    /// A word for why it failed, if the supervisor says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Without the time for which it waited for a person.
    duration_ms: u64,
    /// Whether a limit left anything out of the answer.
    truncated: bool,
    /// What each layer of the guard did, from the outermost to the plugin; none for a call that never came to the supervisor.
    layers: Vec<Layer>,
}

impl From<(agent::ToolComplete, &str)> for BusToolComplete {
    fn from((update, session): (agent::ToolComplete, &str)) -> Self {
        Self {
            turn: update.turn,
            call_id: tool_call_id(session, &update.call_id),
            tool: update.tool,
            plugin: some(update.plugin),
            action: some(update.action),
            subagent: some(update.subagent),
            outcome: update.outcome,
            reason: some(update.reason),
            duration_ms: update.duration_ms,
            truncated: update.truncated,
            layers: update.layers.into_iter().map(Layer::from).collect(),
        }
    }
}

/// A new session.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusSession {
    channel: String,
    /// In milliseconds since 1970.
    created_at: u64,
}

impl From<(agent::SessionCreated, &str)> for BusSession {
    fn from((update, _): (agent::SessionCreated, &str)) -> Self {
        Self { channel: update.channel, created_at: update.created_unix_ms }
    }
}

/// Keys of the configuration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusConfig {
    /// Those that hold now.
    keys: Vec<String>,
    /// Those that hold after the next start.
    needs_restart: Vec<String>,
}

impl From<(agent::ConfigChanged, &str)> for BusConfig {
    fn from((update, _): (agent::ConfigChanged, &str)) -> Self {
        Self { keys: update.keys, needs_restart: update.needs_restart }
    }
}

/// A step of a turn.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusThinking {
    turn: u64,
    phase: String,
    iteration: u32,
}

impl From<(agent::AgentThinking, &str)> for BusThinking {
    fn from((update, _): (agent::AgentThinking, &str)) -> Self {
        Self { turn: update.turn, phase: update.phase, iteration: update.iteration }
    }
}

/// What became of a plugin.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusPlugin {
    plugin: String,
    /// 0: it is about all of them.
    instance: u32,
    /// One sentence.
    message: String,
    /// For programs: from, to, reason, exit, topic and the like.
    fields: BTreeMap<String, String>,
}

impl From<(agent::PluginUpdate, &str)> for BusPlugin {
    fn from((update, _): (agent::PluginUpdate, &str)) -> Self {
        Self {
            plugin: update.plugin,
            instance: update.instance,
            message: update.message,
            fields: update.fields,
        }
    }
}

/// What the guard did.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusGuard {
    plugin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    /// The layer that did it.
    layer: String,
    reason: String,
    /// How often control syntax of each family was neutralized.
    neutralized: BTreeMap<String, u32>,
}

impl From<(agent::GuardUpdate, &str)> for BusGuard {
    fn from((update, session): (agent::GuardUpdate, &str)) -> Self {
        Self {
            plugin: update.plugin,
            action: some(update.action),
            call_id: some(update.call_id).map(|call| tool_call_id(session, &call)),
            layer: update.layer,
            reason: update.reason,
            neutralized: update.neutralized,
        }
    }
}

/// What waits for a person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusApproval {
    /// Its id.
    approval: String,
    /// call, question or plan
    about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// pending, approved, denied, answered, expired or cancelled
    state: String,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    /// In milliseconds since 1970.
    expires_at: u64,
}

impl From<(agent::ApprovalUpdate, &str)> for BusApproval {
    fn from((update, _): (agent::ApprovalUpdate, &str)) -> Self {
        Self {
            approval: update.approval,
            about: update.about,
            plugin: some(update.plugin),
            action: some(update.action),
            state: update.state,
            why: update.why,
            decided_by: some(update.decided_by),
            subagent: some(update.subagent),
            expires_at: update.expires_unix_ms,
        }
    }
}

/// A run of a job, or the task of a sub-agent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusTask {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    /// The first is 1.
    attempt: u32,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<(agent::TaskUpdate, &str)> for BusTask {
    fn from((update, _): (agent::TaskUpdate, &str)) -> Self {
        Self {
            job: some(update.job),
            run: some(update.run),
            subagent: some(update.subagent),
            attempt: update.attempt,
            reason: some(update.reason),
        }
    }
}

/// An attempt to deliver a notification.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusNotification {
    /// Its id.
    notification: String,
    entry: String,
    kind: String,
    severity: String,
    summary: String,
    attempt: u32,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<(agent::NotificationUpdate, &str)> for BusNotification {
    fn from((update, _): (agent::NotificationUpdate, &str)) -> Self {
        Self {
            notification: update.notification,
            entry: update.entry,
            kind: update.kind,
            severity: update.severity,
            summary: update.summary,
            attempt: update.attempt,
            reason: some(update.reason),
        }
    }
}

/// Nothing more is said of it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BusSessionIdle {}

impl From<(agent::SessionIdle, &str)> for BusSessionIdle {
    fn from(_: (agent::SessionIdle, &str)) -> Self {
        Self {}
    }
}
