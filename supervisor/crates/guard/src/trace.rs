//! Puts every call into a span and counts how it ended.
//!
//! It stands outermost, so that it sees every outcome, refusals included, and also the calls whose caller
//! went away (`cancelled`).
//!
//! The span is called `call`, its target is `talon::call`, and it carries `call_id`, `plugin`, `action`,
//! `origin` and `session`. The layer that selects one of the plugin's processes sets `instance`. At the end
//! of a traced call `outcome`, `reason` and `duration_us` are added, which the log has in a separate line.
//! The span has the level of errors, so that every event inside it names its call.
//!
//! # Metrics
//!
//! | name | labels | meaning |
//! |---|---|---|
//! | `talon_guard_calls_total` | plugin, outcome, reason | calls that ended |
//! | `talon_guard_call_duration_seconds` | plugin, outcome | how long they took, waiting included |
//! | `talon_guard_bytes_in_total` | plugin | bytes of text before the guard |
//! | `talon_guard_bytes_out_total` | plugin | bytes of text after it, without the envelope |
//! | `talon_guard_bytes_left_out_total` | plugin | bytes that a size limit left out |
//! | `talon_guard_truncated_total` | plugin | answers from which a size limit left something out |
//! | `talon_guard_structured_as_text_total` | plugin | structured content that did not parse |
//! | `talon_guard_neutralised_total` | plugin, family | control syntax neutralized |
//! | `talon_guard_neutralised_kinds_total` | plugin, family, kind | the same in more detail |
//! | `talon_guard_flagged_total` | plugin, flag | answers in which something was noticed and left unchanged |
//! | `talon_guard_tainted_total` | plugin | calls whose arguments carried text of a plugin's answer |
//! | `talon_guard_paged_total` | plugin | answers that are stored for reading on |
//! | `talon_guard_quarantines_total` | plugin | how often the plugin was quarantined |
//! | `talon_guard_quarantined` | plugin | 1 while it is |
//!
//! The last two are recorded by [`quarantine`](crate::quarantine).
//!
//! Every label is bounded: `plugin` is a name from the configuration, never from a call; `outcome`, `reason`,
//! `family`, `kind` and `flag` are closed sets. The action is in the span but not a label: a caller can make
//! up actions, and a plugin may declare hundreds. A series is registered with its first count.

mod meters;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use metrics::Unit;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use self::meters::{CANCELLED, Meters};
use crate::answer::Outcome;
use crate::call::Call;
use crate::reason;
use crate::report::Report;
use crate::wrap::Guarded;
use talon_sanitize::prefix;

/// The `plugin` label of calls to plugins that do not exist. No plugin can have this name.
pub const UNKNOWN_PLUGIN_LABEL: &str = "(unknown)";

/// How much of a caller's text a span field holds: names and ids are at most 64 and 128 characters by
/// contract.
const MAX_FIELD_BYTES: usize = 128;

/// Describes the series to the installed metrics recorder. Call it once.
pub fn describe_metrics() {
    use metrics::{describe_counter as counter, describe_histogram as histogram};
    counter!("talon_guard_calls_total", Unit::Count, "Calls that ended, by outcome and reason");
    histogram!("talon_guard_call_duration_seconds", Unit::Seconds, "How long calls took, waiting included");
    counter!("talon_guard_bytes_in_total", Unit::Bytes, "Text before the guard");
    counter!("talon_guard_bytes_out_total", Unit::Bytes, "Text after the guard, without the envelope");
    counter!("talon_guard_bytes_left_out_total", Unit::Bytes, "Text that a size limit left out");
    counter!("talon_guard_truncated_total", Unit::Count, "Answers of which a size limit left something out");
    counter!("talon_guard_structured_as_text_total", Unit::Count, "Structured content that did not parse");
    counter!("talon_guard_neutralised_total", Unit::Count, "Control syntax neutralized, by family");
    counter!(
        "talon_guard_neutralised_kinds_total",
        Unit::Count,
        "Control syntax neutralized, by family and kind"
    );
    counter!("talon_guard_flagged_total", Unit::Count, "Answers in which something was noticed, by what");
    counter!(
        "talon_guard_tainted_total",
        Unit::Count,
        "Calls whose arguments carried what a plugin had said"
    );
    counter!("talon_guard_paged_total", Unit::Count, "Answers that are kept for reading on");
    counter!("talon_guard_quarantines_total", Unit::Count, "How often a plugin was quarantined");
    metrics::describe_gauge!("talon_guard_quarantined", Unit::Count, "1 while the plugin is quarantined");
}

/// Makes [`Trace`] services.
#[derive(Debug, Clone)]
pub struct TraceLayer {
    meters: Arc<Meters>,
}

impl TraceLayer {
    /// A layer for the calls of one plugin, which must be a configured name: it becomes a metrics label.
    #[must_use]
    pub fn new(plugin: impl Into<String>) -> Self {
        Self { meters: Arc::new(Meters::new(plugin.into())) }
    }

    /// A layer for calls to plugins that do not exist, all of them under [`UNKNOWN_PLUGIN_LABEL`].
    #[must_use]
    pub fn for_unknown_plugins() -> Self {
        Self::new(UNKNOWN_PLUGIN_LABEL)
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;
    fn layer(&self, inner: S) -> Trace<S> {
        Trace { meters: self.meters.clone(), inner }
    }
}

/// Traces calls: see the [module](self).
#[derive(Debug, Clone)]
pub struct Trace<S> {
    meters: Arc<Meters>,
    inner: S,
}

impl<S> Service<Call> for Trace<S>
where
    S: Service<Call, Response = Guarded>,
{
    type Response = Guarded;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        let span = tracing::error_span!(
            target: "talon::call",
            "call",
            call_id = prefix(&call.id, MAX_FIELD_BYTES),
            plugin = prefix(&call.plugin, MAX_FIELD_BYTES),
            action = prefix(&call.action, MAX_FIELD_BYTES),
            origin = call.origin.as_str(),
            session = call.session().map(|session| prefix(session, MAX_FIELD_BYTES)),
            instance = tracing::field::Empty,
            outcome = tracing::field::Empty,
            reason = tracing::field::Empty,
            duration_us = tracing::field::Empty,
        );
        if let Some(trace) = &call.trace {
            trace.begin(&span);
        }
        let (accepted, traced) = (call.accepted, call.trace.is_some());
        let future = span.in_scope(|| self.inner.call(call));
        let watch = CallSpan { span, meters: self.meters.clone(), accepted, traced, ended: false };
        ResponseFuture { future, watch }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        // After the future: what its drop logs still belongs to the span.
        watch: CallSpan,
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Guarded, E>>,
{
    type Output = Result<Guarded, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = {
            let _entered = this.watch.span.enter();
            ready!(this.future.poll(cx))
        };
        match &result {
            Ok(guarded) => this.watch.end(guarded.outcome(), Some(guarded.report())),
            // In a complete stack `rescue` leaves no error. Without it the meaning of the error is unknown.
            Err(_) => {
                let outcome = Outcome::HostFault { reason: reason::INTERNAL, retryable: false };
                this.watch.end(&outcome, None);
            }
        }
        Poll::Ready(result)
    }
}

/// The span of one running call. If it is dropped before its end, the call was cancelled.
struct CallSpan {
    span: Span,
    meters: Arc<Meters>,
    accepted: Instant,
    /// Whether a subscriber reads the end of the span.
    traced: bool,
    ended: bool,
}

impl CallSpan {
    fn end(&mut self, outcome: &Outcome, report: Option<&Report>) {
        let took = self.close(outcome.as_str(), outcome.reason());
        self.meters.count(outcome.as_str(), outcome.reason(), took);
        if let Some(report) = report {
            self.meters.add(report);
        }
    }

    fn close(&mut self, outcome: &'static str, reason: &'static str) -> Duration {
        self.ended = true;
        let took = self.accepted.elapsed();
        let duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if self.traced {
            // All at once: each call of `record` makes every subscriber look up the span.
            tracing::record_all!(self.span, outcome = outcome, reason = reason, duration_us = duration_us);
        }
        tracing::debug!(parent: &self.span, outcome, reason, duration_us, "call finished");
        took
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.ended {
            let took = self.close(CANCELLED, CANCELLED);
            self.meters.count(CANCELLED, CANCELLED, took);
        }
    }
}

#[cfg(test)]
mod tests;
