//! Traces of turns, for the supervisor's collector.
//!
//! The agent records spans and sends them over its control socket, since the supervisor has the way to the collector.
//! A turn is a span, each of its states one below it, and each question to a model and each call of a tool one below
//! the state. The names are those of OpenTelemetry's
//! [conventions for generative AI](https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/) where they have
//! one. Nothing of what is said is in them.
//!
//! ```text
//! client's traceparent ─► invoke_agent ─► state … ─► chat, execute_tool ─► traceparent ─► the supervisor's call
//! ```

mod open_span;
mod tracer;

pub use open_span::OpenSpan;
pub use tracer::{SpanContext, Tracer};
