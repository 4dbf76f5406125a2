//! What holds for the attributes of all spans.

use opentelemetry::Value;
use talon_sanitize::Raw;

/// The scope of the agent's spans, by which the exporter tells them from those of calls.
pub(super) const AGENT_SCOPE: &str = "talon-agent";
/// The most attributes of a span; ours have a dozen. The SDK drops more.
pub(super) const MAX_ATTRIBUTES: u32 = 32;
/// The longest value, in bytes. Names, ids and words are at most 128 by contract, and neutralizing may
/// lengthen them.
const MAX_VALUE_BYTES: usize = 256;

pub(super) fn neutralize(value: Value) -> Value {
    match value {
        Value::Bool(_) | Value::I64(_) | Value::F64(_) => value,
        text => Raw::from(text.as_str().as_ref()).line_within(MAX_VALUE_BYTES).into_string().into(),
    }
}
