//! Counts dropped spans, which the SDK's batch processor does not report.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

/// The most spans that wait to be sent. 2,048: a thousand calls, about 2 MiB. Further spans are dropped and
/// counted.
pub(super) const MAX_QUEUED_SPANS: usize = 2048;

/// One counter for the process, because it exports to one collector.
static DROPPED: AtomicU64 = AtomicU64::new(0);

pub(super) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

pub(super) fn count_dropped(count: u64) {
    DROPPED.fetch_add(count, Ordering::Relaxed);
}

/// The number of queued spans.
#[derive(Debug, Clone, Default)]
pub(super) struct QueuedSpans(Arc<AtomicUsize>);

impl QueuedSpans {
    /// Counts one more span, unless the queue is full.
    fn try_add(&self) -> bool {
        let entered = self.0.fetch_add(1, Ordering::Relaxed) < MAX_QUEUED_SPANS;
        if !entered {
            self.remove(1);
        }
        entered
    }

    pub(super) fn remove(&self, count: usize) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Passes at most as many spans to the batch processor as its queue holds, so that every dropped span is
/// counted: here or in the exporter.
#[derive(Debug)]
pub(super) struct BoundedProcessor<P> {
    batches: P,
    waiting: QueuedSpans,
}

impl<P> BoundedProcessor<P> {
    pub(super) fn new(batches: P, waiting: QueuedSpans) -> Self {
        Self { batches, waiting }
    }
}

impl<P: SpanProcessor> SpanProcessor for BoundedProcessor<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.waiting.try_add() {
            self.batches.on_end(span);
        } else {
            count_dropped(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// The processor of two sources: the spans of calls, and those that the agent sends.
#[derive(Debug)]
pub(super) struct SharedProcessor<P>(pub(super) Arc<BoundedProcessor<P>>);

impl<P: SpanProcessor> SpanProcessor for SharedProcessor<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.0.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        self.0.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }
}
