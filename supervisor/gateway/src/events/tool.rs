//! Payloads of `tool.*`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The model calls a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCallEvent {
    pub session_id: String,
    /// Its own id, which its result names; the event has the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    pub tool: String,
    /// Its arguments, as one object with their types; what the model wrote as text if that was no object.
    pub args: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResultEvent {
    pub session_id: String,
    /// The id of its `tool.call`.
    pub id: String,
    pub tool: String,
    pub success: bool,
    /// The text that the model gets.
    pub output: String,
    pub metadata: ToolResultMetadata,
}

/// About a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResultMetadata {
    /// In milliseconds.
    pub execution_time: u64,
    /// Whether a limit left anything out.
    pub truncated: bool,
    /// What came of its confirmation: approved, denied, expired or cancelled. Absent if it needed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<String>,
}

/// What a running call puts out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolStreamEvent {
    pub session_id: String,
    /// The id of its `tool.call`.
    pub id: String,
    pub lines: Vec<String>,
    /// Whole lines that were left out since the last of these events, and bytes of these and of lines that were cut.
    pub left_out_lines: u64,
    pub left_out_bytes: u64,
}

/// How far a running call has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolProgressEvent {
    pub session_id: String,
    /// The id of its `tool.call`.
    pub id: String,
    pub progress: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    pub message: String,
}
