//! The result of a sub-agent's turn.

use serde_json::{Value, json};
use talon_sanitize::MarkedSpan;

use super::error::ResultError;
use crate::answer::Schema;
use crate::driver::TurnEnd;

/// A result, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SubAgentOutcome {
    pub(super) result: Result<Value, ResultError>,
    pub(super) tokens: u64,
    pub(super) cost_pico_usd: u64,
    pub(super) duration_ms: u64,
    /// Every model that saw the task.
    pub(super) models: Vec<String>,
    /// The originals of what the result repeats.
    pub(super) originals: Vec<MarkedSpan>,
}

impl SubAgentOutcome {
    /// The outcome of a turn. The runner has checked the answer against the schema; it is checked again,
    /// since nothing else may pass.
    pub(super) fn of(end: TurnEnd, schema: &Schema) -> Self {
        let result = match end.outcome {
            Ok(text) => checked(&text, schema),
            Err((word, sentence)) => Err(ResultError::Failed { word, sentence }),
        };
        Self {
            result,
            tokens: end.usage.input_tokens.saturating_add(end.usage.output_tokens),
            cost_pico_usd: end.cost_pico_usd,
            duration_ms: end.duration_ms,
            models: end.models,
            originals: end.originals,
        }
    }

    /// The founding form: `{agent, result, tokens_used, cost, duration_ms}`, with the cost in US dollars.
    pub(super) fn to_json(&self, agent: &str, result: &Value) -> Value {
        json!({
            "agent": agent,
            "result": result,
            "tokens_used": self.tokens,
            "cost": dollars(self.cost_pico_usd),
            "duration_ms": self.duration_ms,
        })
    }
}

fn checked(text: &str, schema: &Schema) -> Result<Value, ResultError> {
    let value: Value = serde_json::from_str(text).map_err(|_| ResultError::NoJson)?;
    schema.check(&value).map_err(ResultError::Mismatches)?;
    Ok(value)
}

/// For display only; calculations use the integer.
#[expect(clippy::cast_precision_loss, reason = "fifteen digits of a cost are more than anybody reads")]
fn dollars(pico: u64) -> f64 {
    pico as f64 / 1e12
}
