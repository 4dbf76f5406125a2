//! `traces`: OpenTelemetry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traces of calls for OpenTelemetry, sent by OTLP over gRPC. Off unless there is an `endpoint`.
///
/// A trace begins at `host.sock` or with a question to the agent, or continues the one in the caller's
/// metadata (`traceparent`), and is passed on to plugins in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Traces {
    /// Where the collector listens: `unix:/run/otel/otlp.sock`, or `http://127.0.0.1:4317` for one on this
    /// machine.
    ///
    /// Other machines are refused: what a supervisor sends leaves its machine through a collector alone.
    #[schemars(example = &"unix:/run/otelcol/otlp.sock")]
    pub endpoint: Option<String>,
    /// The share of calls that are traced, from 0 to 1, where the caller has not decided.
    #[schemars(range(min = 0, max = 1))]
    pub sample: f64,
}

impl Default for Traces {
    fn default() -> Self {
        Self { endpoint: None, sample: 1.0 }
    }
}
