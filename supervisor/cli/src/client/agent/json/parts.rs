//! What is part of several messages: amounts, attempts, and calls of tools.

use serde_json::{Value, json};
use talon_proto::agent::{Attempt, ToolCall, ToolResult, Usage};

use crate::client::agent::formatting::usd;

/// An amount in picodollars, and formatted for people.
pub(super) fn cost(pico: u64) -> (Value, Value) {
    (json!(pico), json!(usd(pico)))
}

pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "thinking_tokens": usage.thinking_tokens,
    })
}

pub(super) fn attempt(attempt: &Attempt) -> Value {
    json!({
        "provider": attempt.provider,
        "model": attempt.model,
        "success": attempt.success,
        "error_class": attempt.error_class,
        "error": attempt.error,
        "latency_ms": attempt.latency_ms,
        "cost_pico_usd": attempt.cost_pico_usd,
    })
}

pub(super) fn call(call: &ToolCall) -> Value {
    json!({
        "call_id": call.call_id,
        "plugin": call.plugin,
        "action": call.action,
        "tool": call.tool,
        "arguments": parsed(&call.arguments),
    })
}

pub(super) fn tool_result(result: &ToolResult) -> Value {
    json!({
        "call_id": result.call_id,
        "tool": result.tool,
        "success": result.success,
        "output": result.output,
        "duration_ms": result.duration_ms,
        "truncated": result.truncated,
    })
}

/// Parses JSON text; text that is not JSON stays a string.
pub(super) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
