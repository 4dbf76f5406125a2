//! The destinations of logs and traces: stderr, systemd's journal, OTLP.
//!
//! | module | responsibility |
//! |---|---|
//! | [`log`] | log lines, written by a separate thread in one of three formats |
//! | [`traces`] | spans of calls and of the agent's turns, sent to an OpenTelemetry collector on this machine |
//! | [`setup`] | start and end of both, and the filter, which can be changed in between |
//!
//! The heavy telemetry dependencies stay in this crate: other crates use `tracing` and pass trace contexts on
//! unparsed.

pub mod log;
pub mod setup;
pub mod traces;

pub use log::{FILTER_VARIABLE, Format, dropped};
pub use setup::{LogHandle, Settings, TelemetryError, TelemetryGuard, handle, init};
pub use traces::{
    AgentSpan, CallTrace, Endpoint, ParseEndpointError, TraceSettings, count_dropped_spans, export_spans,
    spans_dropped, trace_sample,
};
