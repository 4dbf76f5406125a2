//! The frames of each provider's stream, made for tests that send too many, too large or wrong ones.

use serde_json::{Value, json};
use talon_llm::config::ProviderKind;

use crate::server::Reply;

/// Every format that is read from a network.
pub(crate) const KINDS: [ProviderKind; 5] = [
    ProviderKind::Openai,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
    ProviderKind::Responses,
    ProviderKind::Ollama,
];

/// A stream of these bytes.
pub(crate) fn stream(kind: ProviderKind, body: impl Into<Vec<u8>>) -> Reply {
    if kind == ProviderKind::Ollama { Reply::lines(body) } else { Reply::events(body) }
}

/// A frame with this data.
pub(crate) fn frame(kind: ProviderKind, data: &str) -> String {
    if kind == ProviderKind::Ollama { format!("{data}\n") } else { format!("data: {data}\n\n") }
}

/// A frame that says nothing, of about this many bytes.
pub(crate) fn noise(kind: ProviderKind, bytes: usize) -> String {
    if kind == ProviderKind::Ollama {
        format!("{}\n", " ".repeat(bytes))
    } else {
        format!(": {}\n\n", "x".repeat(bytes))
    }
}

/// A piece of text.
pub(crate) fn text(kind: ProviderKind, text: &str) -> String {
    let value = match kind {
        ProviderKind::Openai => {
            json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] })
        }
        ProviderKind::Anthropic => json!({
            "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text },
        }),
        ProviderKind::Gemini => json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] }),
        ProviderKind::Responses => {
            json!({ "type": "response.output_text.delta", "output_index": 0, "delta": text })
        }
        ProviderKind::Ollama => json!({ "message": { "role": "assistant", "content": text }, "done": false }),
        other => panic!("{other:?} has no wire"),
    };
    frame(kind, &value.to_string())
}

/// A piece of what a model thinks.
pub(crate) fn thinking(kind: ProviderKind, text: &str) -> String {
    let value = match kind {
        ProviderKind::Openai => {
            json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": text } }] })
        }
        ProviderKind::Anthropic => json!({
            "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": text },
        }),
        ProviderKind::Gemini => {
            json!({ "candidates": [{ "content": { "parts": [{ "text": text, "thought": true }] } }] })
        }
        ProviderKind::Responses => {
            json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": text })
        }
        ProviderKind::Ollama => {
            json!({ "message": { "role": "assistant", "thinking": text }, "done": false })
        }
        other => panic!("{other:?} has no wire"),
    };
    frame(kind, &value.to_string())
}

/// A call, or a piece of one where the format has pieces.
pub(crate) fn call(kind: ProviderKind, index: usize, arguments: &str) -> String {
    let name = "weather";
    let value = match kind {
        ProviderKind::Openai => json!({ "choices": [{ "index": 0, "delta": {
            "tool_calls": [{ "index": index, "function": { "name": name, "arguments": arguments } }],
        } }] }),
        ProviderKind::Anthropic if arguments.is_empty() => json!({
            "type": "content_block_start", "index": index,
            "content_block": { "type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {} },
        }),
        ProviderKind::Anthropic => json!({
            "type": "content_block_delta", "index": index,
            "delta": { "type": "input_json_delta", "partial_json": arguments },
        }),
        ProviderKind::Gemini => json!({ "candidates": [{ "content": { "parts": [{
            "functionCall": { "name": name, "args": { "city": arguments } },
        }] } }] }),
        ProviderKind::Responses if arguments.is_empty() => json!({
            "type": "response.output_item.added", "output_index": index,
            "item": { "type": "function_call", "call_id": format!("call_{index}"), "name": name, "arguments": "" },
        }),
        ProviderKind::Responses => json!({
            "type": "response.function_call_arguments.delta", "output_index": index, "delta": arguments,
        }),
        ProviderKind::Ollama => json!({ "message": { "role": "assistant", "content": "", "tool_calls": [{
            "function": { "name": name, "arguments": { "city": arguments } },
        }] }, "done": false }),
        other => panic!("{other:?} has no wire"),
    };
    frame(kind, &value.to_string())
}

/// The end of an answer.
pub(crate) fn end(kind: ProviderKind) -> String {
    let value = match kind {
        ProviderKind::Openai => json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
        ProviderKind::Anthropic => json!({ "type": "message_stop" }),
        ProviderKind::Gemini => json!({ "candidates": [{ "finishReason": "STOP" }] }),
        ProviderKind::Responses => {
            json!({ "type": "response.completed", "response": { "status": "completed" } })
        }
        ProviderKind::Ollama => json!({ "done": true, "done_reason": "stop" }),
        other => panic!("{other:?} has no wire"),
    };
    frame(kind, &value.to_string())
}

/// The beginning of an answer that breaks off in the middle of a frame.
pub(crate) fn half(kind: ProviderKind) -> String {
    let next = text(kind, " and more");
    format!("{}{}", text(kind, "Half"), &next[..next.len() / 2])
}

/// An error in the middle of an answer, in the forms that the provider has, with a word of each.
pub(crate) fn errors(kind: ProviderKind) -> Vec<(Value, &'static str)> {
    match kind {
        ProviderKind::Openai => vec![(
            json!({ "error": { "message": "The server had an error", "type": "server_error" } }),
            "had an error",
        )],
        ProviderKind::Anthropic => vec![(
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
            "Overloaded",
        )],
        // https://ai.google.dev/gemini-api/docs/troubleshooting
        ProviderKind::Gemini => vec![
            (
                json!({ "error": { "code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE" } }),
                "overloaded",
            ),
            (
                json!([{ "error": { "code": 500, "message": "Internal error.", "status": "INTERNAL" } }]),
                "Internal",
            ),
        ],
        // https://platform.openai.com/docs/api-reference/responses-streaming/error
        ProviderKind::Responses => vec![
            (
                json!({ "type": "error", "code": "server_error", "message": "Something went wrong", "param": null }),
                "went wrong",
            ),
            (
                json!({ "type": "response.failed", "response": { "status": "failed",
                    "error": { "code": "server_error", "message": "The model failed to answer" } } }),
                "failed to answer",
            ),
            (json!({ "error": { "code": "server_error", "message": "A proxy says no" } }), "proxy says no"),
        ],
        ProviderKind::Ollama => vec![(json!({ "error": "unexpected EOF" }), "unexpected EOF")],
        other => panic!("{other:?} has no wire"),
    }
}

/// Frames whose known fields have other types; an answer goes on behind each.
pub(crate) fn wrong_types(kind: ProviderKind) -> Vec<Value> {
    match kind {
        ProviderKind::Openai => vec![
            json!({ "choices": "x" }),
            json!({ "choices": [7] }),
            json!({ "choices": [{ "delta": 7 }] }),
            json!({ "choices": [{ "delta": { "content": { "a": 1 }, "tool_calls": "x" } }] }),
            json!({ "model": 7, "usage": "x", "choices": [{ "finish_reason": 7 }] }),
        ],
        ProviderKind::Anthropic => vec![
            json!({ "type": "message_start", "message": 7 }),
            json!({ "type": "content_block_start", "index": "x", "content_block": 7 }),
            json!({ "type": "content_block_delta", "index": -1, "delta": "x" }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": 7 } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": 7 }, "usage": [] }),
        ],
        ProviderKind::Gemini => vec![
            json!({ "candidates": "x" }),
            json!({ "candidates": [7] }),
            json!({ "candidates": [{ "content": { "parts": 7 } }] }),
            json!({ "candidates": [{ "content": { "parts": [7, { "text": 7 }, { "functionCall": "x" }] } }] }),
            json!({ "candidates": [{ "content": { "parts": [{ "thoughtSignature": 7, "thought": "x" }] } }] }),
            json!({ "modelVersion": 7, "usageMetadata": "x", "promptFeedback": 7, "candidates": [{ "finishReason": 7 }] }),
        ],
        ProviderKind::Responses => vec![
            json!({ "type": "response.created", "response": 7 }),
            json!({ "type": "response.output_text.delta", "output_index": "x", "delta": { "a": 1 } }),
            json!({ "type": "response.output_item.added", "output_index": -1, "item": "x" }),
            json!({ "type": "response.output_item.done", "output_index": 9, "item": { "type": 7 } }),
            json!({ "type": "response.output_item.done", "output_index": 8, "item": { "type": "message", "content": 7 } }),
            json!({ "type": "response.output_item.done", "output_index": 7, "item": { "type": "reasoning", "summary": "x", "encrypted_content": 7 } }),
            json!({ "type": "response.of_next_year", "delta": 7 }),
        ],
        ProviderKind::Ollama => vec![
            json!({ "message": 7, "done": false }),
            json!({ "message": { "content": 7, "thinking": [], "tool_calls": "x" }, "done": "x" }),
            json!({ "model": 7, "message": {}, "done": 7 }),
        ],
        other => panic!("{other:?} has no wire"),
    }
}

/// Data that is no frame of this format.
pub(crate) fn unreadable(kind: ProviderKind) -> [&'static str; 3] {
    match kind {
        ProviderKind::Openai => ["<html>", "[1]", "7"],
        ProviderKind::Anthropic => [r#"{"a":1}"#, "no", "[1]"],
        ProviderKind::Gemini => ["<html>", "[1]", "no"],
        ProviderKind::Responses => [r#"{"a":1}"#, "no", "[1]"],
        ProviderKind::Ollama => ["data: {}", r#"{"status":"ok"}"#, "[1]"],
        other => panic!("{other:?} has no wire"),
    }
}
