//! The trace context of a call, from the headers of
//! [W3C Trace Context](https://www.w3.org/TR/trace-context/).

use std::str::FromStr;
use std::sync::atomic::Ordering;

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use talon_trace_context::{TRACE_PARENT, TraceParent};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::ENABLED;

const TRACE_STATE: &str = "tracestate";

/// The longest `tracestate` that is passed on, in bytes: the minimum that the standard asks for. A longer one
/// is left out, and the trace continues without it.
const MAX_STATE_BYTES: usize = 512;

/// Ties one call to a trace: the parent of its spans, and the headers for its plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTrace {
    incoming: Option<SpanContext>,
}

impl CallTrace {
    /// The trace context of a call's headers. `None` if the call has no trace context and traces are not
    /// exported. Invalid headers count as missing.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let incoming = parse(headers);
        (incoming.is_some() || ENABLED.load(Ordering::Relaxed)).then_some(Self { incoming })
    }

    /// Makes the span of the call a child of the caller's span. Does nothing if traces are not exported.
    pub fn set_parent(&self, call: &Span) {
        if let Some(incoming) = &self.incoming {
            // An error means that the span is not exported.
            let _ = call.set_parent(Context::new().with_remote_span_context(incoming.clone()));
        }
    }

    /// The headers that continue the trace in a request within this span. If traces are not exported, these
    /// are the incoming headers.
    #[must_use]
    pub fn outgoing_headers(&self, request: &Span) -> Vec<(&'static str, String)> {
        let context = request.context();
        let own = Some(context.span().span_context().clone()).filter(SpanContext::is_valid);
        own.as_ref().or(self.incoming.as_ref()).map(headers).unwrap_or_default()
    }
}

fn headers(context: &SpanContext) -> Vec<(&'static str, String)> {
    let parent =
        format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8());
    let state = Some(context.trace_state().header()).filter(|state| !state.is_empty());
    [(TRACE_PARENT, parent)].into_iter().chain(state.map(|state| (TRACE_STATE, state))).collect()
}

fn parse(headers: &HeaderMap) -> Option<SpanContext> {
    let mut parents = headers.get_all(TRACE_PARENT).iter();
    let parent = parents.next()?.to_str().ok()?;
    // Two of them are ambiguous.
    if parents.next().is_some() {
        return None;
    }
    let TraceParent { trace_id, span_id, flags } = parent.parse().ok()?;
    let (trace, span) = (TraceId::from(trace_id), SpanId::from(span_id));
    Some(SpanContext::new(trace, span, TraceFlags::new(flags), true, state(headers).unwrap_or_default()))
}

fn state(headers: &HeaderMap) -> Option<TraceState> {
    let mut whole = String::new();
    for header in headers.get_all(TRACE_STATE) {
        let piece = header.to_str().ok()?;
        if whole.len() + ",".len() + piece.len() > MAX_STATE_BYTES {
            return None;
        }
        if !whole.is_empty() {
            whole.push(',');
        }
        whole.push_str(piece);
    }
    // White space around members belongs to the list; within a member only spaces are allowed.
    TraceState::from_str(&whole).ok().filter(|state| !state.header().contains('\t'))
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
