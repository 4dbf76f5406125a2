//! Spans that the agent sends: it records turns, and the supervisor has the way to the collector.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _};
use talon_sanitize::Raw;

use super::bounded::{BoundedProcessor, count_dropped};
use super::bounds::{AGENT_SCOPE, MAX_ATTRIBUTES, neutralize};

/// The longest name of a span: an operation, and the name of a model or tool.
const MAX_NAME_BYTES: usize = 256;
/// What the names of attributes begin with; others are not exported. The first are those of OpenTelemetry's
/// conventions for generative AI.
const PREFIXES: [&str; 3] = ["gen_ai.", "talon.", "error."];

/// The one attribute that is a list in the conventions; ours has one entry.
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// The way to the collector, once there is one.
static PROCESSOR: OnceLock<Arc<BoundedProcessor<BatchSpanProcessor>>> = OnceLock::new();

pub(super) fn set_processor(processor: Arc<BoundedProcessor<BatchSpanProcessor>>) {
    // A process exports to one collector.
    let _set = PROCESSOR.set(processor);
}

/// A span of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpan {
    /// The trace.
    pub trace_id: u128,
    /// The span.
    pub span_id: u64,
    /// Its parent; 0 without one.
    pub parent_span_id: u64,
    /// Its name: an operation, and what it is done with.
    pub name: String,
    /// Whether it is a request to another service, as a question to a model is.
    pub is_client: bool,
    /// When it began.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
    /// Texts by attribute.
    pub texts: Vec<(String, String)>,
    /// Numbers by attribute.
    pub numbers: Vec<(String, i64)>,
    /// Whether it failed.
    pub is_error: bool,
}

/// Sends spans to the collector. Without one, or with ids of zero, they are dropped.
pub fn export_spans(spans: impl IntoIterator<Item = AgentSpan>) {
    let Some(processor) = PROCESSOR.get() else { return };
    for span in spans {
        if span.trace_id != 0 && span.span_id != 0 {
            processor.on_end(data(span));
        }
    }
}

/// Counts spans that the agent had no room for.
pub fn count_dropped_spans(count: u64) {
    count_dropped(count);
}

/// The span as it is exported: names and texts neutralized and bounded, and only attributes that are known by their
/// beginning.
fn data(span: AgentSpan) -> SpanData {
    let AgentSpan {
        trace_id,
        span_id,
        parent_span_id,
        name,
        is_client,
        start,
        end,
        texts,
        numbers,
        is_error,
    } = span;
    let known = |name: &String| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let name_of = |name: String| Raw::from(name).line_within(MAX_NAME_BYTES).into_string();
    let texts = texts.into_iter().filter(|(name, _)| known(name));
    let texts = texts.map(|(name, text)| {
        let text = neutralize(Value::from(text));
        let is_list = name == FINISH_REASONS;
        let text = if is_list {
            Value::Array(Array::String(vec![StringValue::from(text.to_string())]))
        } else {
            text
        };
        KeyValue::new(name_of(name), text)
    });
    let numbers = numbers.into_iter().filter(|(name, _)| known(name));
    let numbers = numbers.map(|(name, number)| KeyValue::new(name_of(name), number));
    let most = usize::try_from(MAX_ATTRIBUTES).unwrap_or(usize::MAX);
    let context = SpanContext::new(
        TraceId::from(trace_id),
        SpanId::from(span_id),
        TraceFlags::SAMPLED,
        false,
        TraceState::default(),
    );
    SpanData {
        span_context: context,
        parent_span_id: SpanId::from(parent_span_id),
        parent_span_is_remote: false,
        span_kind: if is_client { SpanKind::Client } else { SpanKind::Internal },
        name: Cow::Owned(name_of(name)),
        start_time: start,
        end_time: end,
        attributes: texts.chain(numbers).take(most).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if is_error { Status::error("") } else { Status::Unset },
        instrumentation_scope: InstrumentationScope::builder(AGENT_SCOPE).build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: TRACE-16
    #[test]
    fn only_known_attributes_are_exported_inert_and_bounded() {
        let now = SystemTime::now();
        let text = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let span = AgentSpan {
            trace_id: 1,
            span_id: 2,
            parent_span_id: 0,
            name: "chat \u{1b}[2Jmodel".to_owned(),
            is_client: true,
            start: now,
            end: now,
            texts: vec![
                text("gen_ai.request.model", &"m\u{1b}".repeat(400)),
                text("prompt", "what somebody said"),
                text("error.type", "timeout"),
            ],
            numbers: (0..100).map(|number| (format!("talon.n{number}"), number)).collect(),
            is_error: true,
        };
        let exported = data(span);
        assert!(!exported.name.contains('\u{1b}'), "{}", exported.name);
        assert_eq!(exported.attributes.len(), usize::try_from(MAX_ATTRIBUTES).unwrap());
        let names: Vec<&str> = exported.attributes.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(&names[..2], ["gen_ai.request.model", "error.type"]);
        let model = exported.attributes[0].value.as_str();
        assert!(model.len() <= 256 + 32 && !model.contains('\u{1b}'), "{}", model.len());
        assert_eq!(exported.status, Status::error(""));
    }
}
