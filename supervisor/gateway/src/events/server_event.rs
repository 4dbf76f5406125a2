//! What the gateway sends.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::agent::{
    AgentNotice, AgentPhase, AgentPlan, AgentResponse, AgentResponseDiscard, AgentResponseEnd, AgentThinking,
    AgentThought, ErrorEvent, SubagentResult, SubagentStart,
};
use super::approval::{ClarificationRequest, ConfirmationRequest, DecisionEvent};
use super::session::{
    ChannelMessageEvent, ConfigUpdated, SessionCreated, SessionEvent, ShadowEvent, ShadowGhost,
};
use super::task::TaskEvent;
use super::tool::{ToolCallEvent, ToolProgressEvent, ToolResultEvent, ToolStreamEvent};

/// An event, by its type. The list is closed: a misspelt one does not compile, and clients ignore those they do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", content = "payload")]
pub(crate) enum ServerEvent {
    /// A message that a session got, also over other connections.
    #[serde(rename = "channel.message")]
    ChannelMessage(ChannelMessageEvent),
    /// A piece of the answer.
    #[serde(rename = "agent.response")]
    AgentResponse(AgentResponse),
    /// The answer is over.
    #[serde(rename = "agent.response.end")]
    AgentResponseEnd(AgentResponseEnd),
    /// Pieces of the answer so far do not count: another attempt begins.
    #[serde(rename = "agent.response.discard")]
    AgentResponseDiscard(AgentResponseDiscard),
    /// Where the loop is.
    #[serde(rename = "agent.phase")]
    AgentPhase(AgentPhase),
    /// The model thinks: for typing indicators, without text.
    #[serde(rename = "agent.thinking")]
    AgentThinking(AgentThinking),
    /// A piece of what the model thinks.
    #[serde(rename = "agent.thought")]
    AgentThought(AgentThought),
    /// Something people should know while the turn goes on.
    #[serde(rename = "agent.notice")]
    AgentNotice(AgentNotice),
    /// The session's plan, after it changed.
    #[serde(rename = "agent.plan")]
    AgentPlan(AgentPlan),
    /// A sub-agent begins.
    #[serde(rename = "subagent.start")]
    SubagentStart(SubagentStart),
    /// A sub-agent has ended.
    #[serde(rename = "subagent.result")]
    SubagentResult(SubagentResult),
    /// The model calls a tool.
    #[serde(rename = "tool.call")]
    ToolCall(ToolCallEvent),
    /// What came of a call.
    #[serde(rename = "tool.result")]
    ToolResult(ToolResultEvent),
    /// What a running call puts out.
    #[serde(rename = "tool.stream")]
    ToolStream(ToolStreamEvent),
    /// How far a running call has come.
    #[serde(rename = "tool.progress")]
    ToolProgress(ToolProgressEvent),
    /// A call, or a plan, waits for a person.
    #[serde(rename = "confirmation.request")]
    ConfirmationRequest(ConfirmationRequest),
    /// It was decided, or waits no more.
    #[serde(rename = "confirmation.decided")]
    ConfirmationDecided(DecisionEvent),
    /// The model, or a plugin, asks a person something.
    #[serde(rename = "clarification.request")]
    ClarificationRequest(ClarificationRequest),
    /// It was answered, or waits no more.
    #[serde(rename = "clarification.decided")]
    ClarificationDecided(DecisionEvent),
    /// A session began, with its first message.
    #[serde(rename = "session.created")]
    SessionCreated(SessionCreated),
    /// A session that was idle is used again.
    #[serde(rename = "session.resumed")]
    SessionResumed(SessionEvent),
    /// A session has become idle.
    #[serde(rename = "session.idle")]
    SessionIdle(SessionEvent),
    /// A session's settings changed, or its turns were undone or compacted: read it again.
    #[serde(rename = "session.updated")]
    SessionUpdated(SessionEvent),
    /// A session is not there, or no more.
    #[serde(rename = "session.deleted")]
    SessionDeleted(SessionEvent),
    /// The configuration changed (scope admin).
    #[serde(rename = "config.updated")]
    ConfigUpdated(ConfigUpdated),
    /// What a watcher saw, before anything is decided about it.
    #[serde(rename = "shadow.event")]
    ShadowEvent(ShadowEvent),
    /// A proposal that nobody asked for, or that changed.
    #[serde(rename = "shadow.ghost")]
    ShadowGhost(ShadowGhost),
    /// A run of a scheduled job begins (scope operate).
    #[serde(rename = "task.started")]
    TaskStarted(TaskEvent),
    /// It is done.
    #[serde(rename = "task.completed")]
    TaskCompleted(TaskEvent),
    /// It, or the task of a sub-agent, failed and is not tried again.
    #[serde(rename = "task.failed")]
    TaskFailed(TaskEvent),
    /// It failed and is tried again, or was interrupted and goes on later.
    #[serde(rename = "task.retried")]
    TaskRetried(TaskEvent),
    /// Something failed: a turn, or a message of the client.
    #[serde(rename = "error")]
    Error(ErrorEvent),
}

impl ServerEvent {
    /// Every type, in the order of the list: what descriptions are held to.
    #[cfg(test)]
    pub(crate) const TYPES: [&'static str; 32] = [
        "channel.message",
        "agent.response",
        "agent.response.end",
        "agent.response.discard",
        "agent.phase",
        "agent.thinking",
        "agent.thought",
        "agent.notice",
        "agent.plan",
        "subagent.start",
        "subagent.result",
        "tool.call",
        "tool.result",
        "tool.stream",
        "tool.progress",
        "confirmation.request",
        "confirmation.decided",
        "clarification.request",
        "clarification.decided",
        "session.created",
        "session.resumed",
        "session.idle",
        "session.updated",
        "session.deleted",
        "config.updated",
        "shadow.event",
        "shadow.ghost",
        "task.started",
        "task.completed",
        "task.failed",
        "task.retried",
        "error",
    ];

    /// Its type, as it is written.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::ChannelMessage(_) => "channel.message",
            Self::AgentResponse(_) => "agent.response",
            Self::AgentResponseEnd(_) => "agent.response.end",
            Self::AgentResponseDiscard(_) => "agent.response.discard",
            Self::AgentPhase(_) => "agent.phase",
            Self::AgentThinking(_) => "agent.thinking",
            Self::AgentThought(_) => "agent.thought",
            Self::AgentNotice(_) => "agent.notice",
            Self::AgentPlan(_) => "agent.plan",
            Self::SubagentStart(_) => "subagent.start",
            Self::SubagentResult(_) => "subagent.result",
            Self::ToolCall(_) => "tool.call",
            Self::ToolResult(_) => "tool.result",
            Self::ToolStream(_) => "tool.stream",
            Self::ToolProgress(_) => "tool.progress",
            Self::ConfirmationRequest(_) => "confirmation.request",
            Self::ConfirmationDecided(_) => "confirmation.decided",
            Self::ClarificationRequest(_) => "clarification.request",
            Self::ClarificationDecided(_) => "clarification.decided",
            Self::SessionCreated(_) => "session.created",
            Self::SessionResumed(_) => "session.resumed",
            Self::SessionIdle(_) => "session.idle",
            Self::SessionUpdated(_) => "session.updated",
            Self::SessionDeleted(_) => "session.deleted",
            Self::ConfigUpdated(_) => "config.updated",
            Self::ShadowEvent(_) => "shadow.event",
            Self::ShadowGhost(_) => "shadow.ghost",
            Self::TaskStarted(_) => "task.started",
            Self::TaskCompleted(_) => "task.completed",
            Self::TaskFailed(_) => "task.failed",
            Self::TaskRetried(_) => "task.retried",
            Self::Error(_) => "error",
        }
    }
}
