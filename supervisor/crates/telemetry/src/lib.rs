//! Where logs and traces go: stderr, systemd's journal, OTLP.
//!
//! | module | what it is |
//! |---|---|
//! | [`log`] | lines, written by a thread of its own in one of three formats |
//! | [`traces`] | spans of calls, sent to an OpenTelemetry collector on this machine |
//! | [`setup`] | the start and end of both, and the filter that may change in between |
//!
//! The heavy dependencies of telemetry end here: other crates speak `tracing` and hand trace contexts on unread.

pub mod log;
pub mod setup;
pub mod traces;

pub use log::{FILTER_VARIABLE, Format, dropped};
pub use setup::{Guard, Handle, Settings, TelemetryError, handle, init};
pub use traces::{BadEndpoint, CallTrace, Endpoint, Traces, spans_dropped};
