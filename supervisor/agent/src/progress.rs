//! Detects turns without progress, by comparing each batch of calls and its results with earlier ones.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use talon_llm::model::{Arguments, ToolCall};

use crate::tool_result::{CallOutcome, ToolResult};

/// The longest cycle of batches that is detected. A model that reads one file, then another, then the first
/// one again repeats in cycles of two or three; longer cycles run into the limit of iterations.
const LONGEST_ROUND: usize = 3;

/// SHA-256 over a batch of calls: names, arguments as [`stable`] JSON, outcomes and outputs. The calls' order
/// does not count, since they run concurrently.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a batch.
    #[must_use]
    pub fn of_batch<'a>(batch: impl Iterator<Item = (&'a ToolCall, &'a ToolResult)>) -> Self {
        let mut each: Vec<Self> = batch.map(|(call, result)| Self::of_call(call, result)).collect();
        each.sort_unstable();
        let mut hash = Sha256::new();
        for print in each {
            hash.update(print.0);
        }
        Self(hash.finalize().into())
    }

    /// The fingerprint of one call, for comparing a tool's successes.
    #[must_use]
    pub fn of_call(call: &ToolCall, result: &ToolResult) -> Self {
        let mut hash = Sha256::new();
        // Each piece is prefixed with its length, so that pieces cannot be shifted into each other.
        let mut piece = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        piece(call.name.as_bytes());
        match &call.arguments {
            Arguments::Object(arguments) => {
                piece(b"object");
                piece(stable(&Value::Object(arguments.clone())).as_bytes());
            }
            Arguments::Unreadable(text) => {
                piece(b"text");
                piece(text.as_bytes());
            }
        }
        piece(match result.outcome {
            CallOutcome::Succeeded => b"succeeded",
            CallOutcome::Failed => b"failed",
            CallOutcome::NotOffered => b"not offered",
            CallOutcome::OverTheLimit => b"over the limit",
            CallOutcome::HandedOver => b"handed over",
        });
        piece(result.output.as_bytes());
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..8]))
    }
}

/// How often in a row the last batch, or the last cycle of up to three batches, was the same; 0 without any
/// batch.
#[must_use]
pub fn repeats(history: &[Fingerprint]) -> u32 {
    let rounds = (1..=LONGEST_ROUND).filter_map(|length| {
        let last = history.rchunks_exact(length).next()?;
        let times = history.rchunks_exact(length).take_while(|round| *round == last).count();
        u32::try_from(times).ok()
    });
    rounds.max().unwrap_or_default()
}

/// Canonical JSON: sorted keys, no white space. Providers and models write the same arguments in different
/// orders.
#[must_use]
pub fn stable(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> =
                    fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
                fields.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                Value::Object(fields.into_iter().collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}

#[cfg(test)]
mod tests;
