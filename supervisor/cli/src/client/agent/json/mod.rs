//! The agent's messages as JSON. The keys are those of `proto/talon/agent/v1/agent.proto` and are stable.

mod records;
mod turn;

pub(super) use records::{approval, compacted, memory, message, model, provider, session};
pub(super) use turn::{chunk, result};

use serde_json::{Value, json};
use talon_proto::agent::{Attempt, Usage};

use super::formatting::usd;

/// An amount in picodollars, and formatted for people.
fn cost(pico: u64) -> (Value, Value) {
    (json!(pico), json!(usd(pico)))
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "thinking_tokens": usage.thinking_tokens,
    })
}

fn attempt(attempt: &Attempt) -> Value {
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

/// Parses JSON text; text that is not JSON stays a string.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
