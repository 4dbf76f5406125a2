//! Payloads of `agent.*`, `subagent.*` and `error`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A piece of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentResponse {
    pub session_id: String,
    /// Text, to be appended to what came before.
    pub content: String,
    /// It is the whole answer at once, and takes the place of what came before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Which attempt it belongs to, and where in it, in bytes. Absent where pieces come in order on one stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// The answer is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentResponseEnd {
    pub session_id: String,
    pub usage: TokenUsage,
    /// The provider that answered.
    pub provider_id: String,
    /// The model that answered.
    pub model: String,
    /// How often the loop asked a model.
    pub iteration: u32,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

/// Pieces so far do not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentResponseDiscard {
    pub session_id: String,
    /// The attempt whose pieces count from now on; absent: all pieces so far are void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
}

/// Where the loop is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentPhase {
    pub session_id: String,
    /// planning, deciding, executing, evaluating, compressing, responding or done
    pub phase: String,
    pub iteration: u32,
    pub max_iterations: u32,
    pub goal: String,
    pub pending: Vec<String>,
    pub completed: Vec<String>,
    pub total_tokens_used: u64,
    /// In US dollars.
    pub total_cost: f64,
}

/// The model thinks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentThinking {
    pub session_id: String,
}

/// A piece of what the model thinks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentThought {
    pub session_id: String,
    pub content: String,
    /// As in `agent.response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// Something people should know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentNotice {
    pub session_id: String,
    /// warn or info
    pub level: String,
    pub text: String,
}

/// The session's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentPlan {
    pub session_id: String,
    pub revision: u64,
    pub approved: bool,
    pub steps: Vec<PlanStep>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanStep {
    pub text: String,
    /// open, active or done
    pub state: String,
}

/// A sub-agent begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubagentStart {
    pub session_id: String,
    /// The id of the call that started it.
    pub id: String,
    pub agent: String,
    pub task: String,
}

/// A sub-agent has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubagentResult {
    pub session_id: String,
    /// The id of the call that started it.
    pub id: String,
    pub agent: String,
    /// What it found; null if it failed.
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub tokens_used: u64,
    /// In US dollars.
    pub cost: f64,
    /// In milliseconds.
    pub duration: u64,
}

/// Something failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorEvent {
    /// The session whose turn failed; absent if a message of the client did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The client's message that it is about; absent if it had no id that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// A word for programs.
    pub reason: String,
    /// What happened, and what to do.
    pub message: String,
    /// What there is of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// When a retry may succeed, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}
