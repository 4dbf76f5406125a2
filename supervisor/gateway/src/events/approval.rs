//! Payloads of `confirmation.*` and `clarification.*`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A call, or a plan, waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfirmationRequest {
    pub session_id: String,
    /// The id of the approval, which the answer names.
    pub id: String,
    /// What people read: `⚠️ The assistant wants to run: …`.
    pub text: String,
    /// The answers, in the order in which buttons show them.
    pub actions: Vec<String>,
    /// The tool that would be called, as plugin.action; empty for a plan.
    pub tool: String,
    /// Exactly what the plugin would get.
    pub args: Value,
    /// Why it asks: always, destructive or pattern.
    pub why: String,
    /// What was seen is what is approved: goes back with the answer.
    pub digest: String,
    /// In milliseconds since 1970.
    pub expires_at: u64,
}

/// The model, or a plugin, asks a person something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClarificationRequest {
    pub session_id: String,
    /// The id of the question, which the answer names.
    pub id: String,
    pub question: String,
    /// Answers that are suggested; any other is as good.
    pub options: Vec<String>,
    /// The plugin whose question it is; absent if it is the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The JSON Schema of the answer, if it is to be one object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// In milliseconds since 1970.
    pub expires_at: u64,
}

/// A request that waits no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecisionEvent {
    pub session_id: String,
    pub id: String,
    /// approved, answered, denied, expired or cancelled
    pub state: String,
}
