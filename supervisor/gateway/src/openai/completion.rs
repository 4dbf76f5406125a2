//! Answers, whole.

use serde::Serialize;
use talon_proto::agent::{Done, Usage};

use super::request::ChatRequest;
use crate::api::sessions::turn::unix_ms;
use crate::random;

/// `chat.completion`
#[derive(Debug, Serialize)]
pub(super) struct Completion {
    id: String,
    object: &'static str,
    created: u64,
    model: String,
    choices: [Choice; 1],
    usage: CompletionUsage,
}

#[derive(Debug, Serialize)]
struct Choice {
    index: u32,
    message: Answer,
    finish_reason: &'static str,
    logprobs: (),
}

#[derive(Debug, Serialize)]
struct Answer {
    role: &'static str,
    content: String,
    refusal: (),
}

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

/// A completion of this answer.
pub(super) fn whole(done: Done, request: &ChatRequest) -> Completion {
    let usage = done.usage.as_ref().into();
    let message = Answer { role: "assistant", content: done.text, refusal: () };
    Completion {
        id: completion_id(),
        object: "chat.completion",
        created: created(),
        model: request.model.clone(),
        choices: [Choice { index: 0, message, finish_reason: "stop", logprobs: () }],
        usage,
    }
}
