//! Spans of the agent's turns, on their way to the collector.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talon_proto::agent::{Span, Spans};
use talon_telemetry::{AgentSpan, count_dropped_spans, export_spans};

/// Passes spans on. A span whose ids are none is dropped and counted: the agent is no more trusted than a client.
pub(super) fn export(spans: Spans) {
    let Spans { spans, dropped } = spans;
    let count = spans.len();
    let known: Vec<AgentSpan> = spans.into_iter().filter_map(agent_span).collect();
    let unknown = u64::try_from(count - known.len()).unwrap_or(u64::MAX);
    count_dropped_spans(dropped.saturating_add(unknown));
    export_spans(known);
}

fn agent_span(span: Span) -> Option<AgentSpan> {
    let Span {
        trace_id,
        span_id,
        parent_span_id,
        name,
        client,
        start_unix_ns,
        end_unix_ns,
        texts,
        numbers,
        error,
    } = span;
    let id = |bytes: Vec<u8>| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    let time = |ns| -> SystemTime { UNIX_EPOCH + Duration::from_nanos(ns) };
    Some(AgentSpan {
        trace_id: u128::from_be_bytes(trace_id.try_into().ok()?),
        span_id: id(span_id)?,
        parent_span_id: if parent_span_id.is_empty() { 0 } else { id(parent_span_id)? },
        name,
        is_client: client,
        start: time(start_unix_ns),
        end: time(end_unix_ns),
        texts: texts.into_iter().collect(),
        numbers: numbers.into_iter().collect(),
        is_error: error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_ids_of_their_lengths() {
        let span = Span { trace_id: vec![1; 16], span_id: vec![2; 8], ..Span::default() };
        assert_eq!(agent_span(span.clone()).map(|span| span.parent_span_id), Some(0));
        for bad in [
            Span { trace_id: vec![1; 15], ..span.clone() },
            Span { span_id: Vec::new(), ..span.clone() },
            Span { parent_span_id: vec![1; 9], ..span },
        ] {
            assert_eq!(agent_span(bad), None);
        }
    }
}
