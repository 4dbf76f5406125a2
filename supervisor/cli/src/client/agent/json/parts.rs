//! What is part of several messages: amounts, and calls of tools.

use serde_json::Value;
use talon_proto::agent::{ToolCall, ToolResult, Usage};

use crate::client::agent::formatting::usd;
use crate::json::fields;

/// The key of an amount in picodollars.
pub(super) const PICO: &str = "cost_pico_usd";

/// Adds the amount as people read it, behind the one in picodollars.
pub(super) fn with_cost(mut value: Value) -> Value {
    let pico = value[PICO].as_u64().unwrap_or_default();
    if let Value::Object(map) = &mut value
        && let Some(place) = map.keys().position(|key| key == PICO)
    {
        map.shift_insert(place + 1, "cost".to_owned(), usd(pico).into());
    }
    value
}

pub(super) fn usage(usage: Option<Usage>) -> Value {
    fields(&usage.unwrap_or_default())
}

pub(super) fn call(call: &ToolCall) -> Value {
    let mut value = fields(call);
    value["arguments"] = parsed(&call.arguments);
    value
}

/// A result while its turn runs: without what only a stored one has.
pub(super) fn result(result: &ToolResult) -> Value {
    let mut value = fields(result);
    if let Value::Object(map) = &mut value {
        map.shift_remove("receipt");
        map.shift_remove("arguments");
    }
    value
}

/// A stored result, with its receipt in hex; the arguments are `null` if the model wrote them so.
pub(super) fn stored_result(result: &ToolResult) -> Value {
    let mut value = fields(result);
    value["receipt"] = hex::encode(&result.receipt).into();
    value["arguments"] = if result.arguments.is_empty() { Value::Null } else { parsed(&result.arguments) };
    value
}

/// Parses JSON text; text that is not JSON stays a string.
pub(super) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
