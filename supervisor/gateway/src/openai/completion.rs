//! Answers, whole.

use serde::Serialize;
use talon_proto::agent::{Done, Usage};
use utoipa::ToSchema;

use super::message::ChatCall;
use super::request::ChatRequest;
use crate::clock::unix_ms;
use crate::random;

/// A completion of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChatCompletion {
    id: String,
    /// chat.completion
    object: &'static str,
    /// In seconds since 1970.
    created: u64,
    /// As the request named it.
    model: String,
    /// One.
    choices: Vec<ChatChoice>,
    usage: CompletionUsage,
}

#[derive(Debug, Serialize, ToSchema)]
struct ChatChoice {
    index: u32,
    message: ChatAnswer,
    finish_reason: FinishReason,
    /// Always null.
    #[schema(value_type = Option<Object>, required = true)]
    logprobs: Null,
}

/// What the assistant says.
#[derive(Debug, Serialize, ToSchema)]
struct ChatAnswer {
    /// assistant
    role: &'static str,
    /// Null if there are calls alone.
    #[schema(required = true)]
    content: Option<String>,
    /// Always null.
    #[schema(value_type = Option<Object>, required = true)]
    refusal: Null,
    /// Calls that the client makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall>,
}

/// What is always null.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Null;

/// Why an answer ends.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FinishReason {
    Stop,
    Length,
    ToolCalls,
}

impl FinishReason {
    pub(super) fn of(done: &Done) -> Self {
        match done.finish.as_str() {
            "client_calls" => Self::ToolCalls,
            "length" => Self::Length,
            _ => Self::Stop,
        }
    }
}

/// What was used.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl From<Option<&Usage>> for CompletionUsage {
    fn from(usage: Option<&Usage>) -> Self {
        let usage = usage.copied().unwrap_or_default();
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            prompt_tokens_details: PromptDetails { cached_tokens: usage.cached_input_tokens },
            completion_tokens_details: CompletionDetails { reasoning_tokens: usage.thinking_tokens },
        }
    }
}

/// The id of a completion.
pub(super) fn completion_id() -> String {
    random::id("chatcmpl")
}

/// Now, in seconds since 1970.
pub(super) fn created() -> u64 {
    unix_ms() / 1000
}

/// A completion of this answer.
pub(super) fn whole(done: &Done, request: &ChatRequest) -> ChatCompletion {
    let tool_calls: Vec<ChatCall> = done.client_calls.iter().map(ChatCall::from).collect();
    let content = Some(done.text.clone()).filter(|text| tool_calls.is_empty() || !text.is_empty());
    let message = ChatAnswer { role: "assistant", content, refusal: Null, tool_calls };
    let finish_reason = FinishReason::of(done);
    ChatCompletion {
        id: completion_id(),
        object: "chat.completion",
        created: created(),
        model: request.model.clone(),
        choices: vec![ChatChoice { index: 0, message, finish_reason, logprobs: Null }],
        usage: CompletionUsage::from(done.usage.as_ref()),
    }
}
