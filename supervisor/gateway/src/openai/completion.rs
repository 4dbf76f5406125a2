//! Answers, whole.

use serde::Serialize;
use serde_json::{Value, json};
use talon_proto::agent::{ClientCall, Done, Usage};

use super::request::ChatRequest;
use crate::clock::unix_ms;
use crate::random;

/// What was used.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
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

/// Why an answer ends.
pub(super) fn finish_reason(done: &Done) -> &'static str {
    match done.finish.as_str() {
        "client_calls" => "tool_calls",
        "length" => "length",
        _ => "stop",
    }
}

/// A call that the client makes.
pub(super) fn tool_call(call: &ClientCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

/// A completion of this answer.
pub(super) fn whole(done: &Done, request: &ChatRequest) -> Value {
    let mut message = json!({"role": "assistant", "content": done.text, "refusal": null});
    if !done.client_calls.is_empty() {
        message["tool_calls"] = done.client_calls.iter().map(tool_call).collect();
        if done.text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    let choice =
        json!({"index": 0, "message": message, "finish_reason": finish_reason(done), "logprobs": null});
    json!({
        "id": completion_id(),
        "object": "chat.completion",
        "created": created(),
        "model": request.model,
        "choices": [choice],
        "usage": CompletionUsage::from(done.usage.as_ref()),
    })
}
