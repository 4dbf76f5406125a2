//! Traces of calls, sent by OTLP to a collector on this machine.
//!
//! A call has two spans: `call`, which its guard stack begins, and `plugin` inside it, around the request to
//! the plugin. Both are `tracing` spans with the target [`TARGET`], of which only the fields in `attributes` are
//! exported, bounded and neutralized. The agent sends spans of its turns ([`AgentSpan`]). Nothing else is exported.
//!
//! ```text
//! span ends ─► queue, MAX_QUEUED_SPANS ─► batch, on its own thread ─► collector
//!                  full: dropped, counted          gone, hangs: dropped, counted, logged once a minute
//! ```
//!
//! Without an endpoint there is no layer, and the trace context of a call is passed to its plugin unchanged.

mod agent_span;
mod attributes;
mod bounded;
mod bounds;
mod context;
mod endpoint;
mod exporter;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanLimits, SpanProcessor as _,
};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::registry::LookupSpan;

pub use self::agent_span::{AgentSpan, count_dropped_spans, export_spans};
pub use self::context::CallTrace;
pub use self::endpoint::{Endpoint, ParseEndpointError};

use self::bounded::{BoundedProcessor, MAX_QUEUED_SPANS, QueuedSpans, SharedProcessor};
use self::bounds::MAX_ATTRIBUTES;
use self::exporter::OtlpExporter;

/// The target of the spans that are exported.
pub const TARGET: &str = "talon::call";

/// The most spans of one batch.
const MAX_BATCH_SPANS: usize = 512;
/// How long a span waits for its batch to fill.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How long the end of the process waits for a collector that does not accept the remaining spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether this process exports traces. An incoming trace context is passed on either way.
static ENABLED: AtomicBool = AtomicBool::new(false);
/// What the operator says of sampling, once traces are exported.
static SAMPLE: OnceLock<f64> = OnceLock::new();

/// The destination of traces, and the sampling.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSettings {
    /// Where the collector listens.
    pub endpoint: Endpoint,
    /// The share of calls that are traced if the caller has not decided, from 0 to 1.
    pub sample: f64,
}

/// The share of traces that are recorded where nobody outside has decided; `None` if this process exports none.
#[must_use]
pub fn trace_sample() -> Option<f64> {
    SAMPLE.get().copied()
}

/// The number of spans of this process that were dropped, because the queue was full or the collector did not
/// accept them.
#[must_use]
pub fn spans_dropped() -> u64 {
    bounded::dropped()
}

/// Dropping this sends the remaining spans, for at most [`FLUSH_TIMEOUT`].
pub(crate) struct FlushGuard(SdkTracerProvider);

impl Drop for FlushGuard {
    fn drop(&mut self) {
        // Spans that are not sent in time are lost, so that the process can end.
        let _ = self.0.shutdown_with_timeout(FLUSH_TIMEOUT);
    }
}

/// Starts exporting, on a separate thread.
pub(crate) fn layer<S>(traces: &TraceSettings) -> std::io::Result<(impl Layer<S> + use<S>, FlushGuard)>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let waiting = QueuedSpans::default();
    let otlp = OtlpExporter::new(traces.endpoint.clone(), waiting.clone())?;
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(MAX_QUEUED_SPANS)
        .with_max_export_batch_size(MAX_BATCH_SPANS)
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    let batch = BatchSpanProcessor::builder(otlp).with_batch_config(config).build();
    let mut processor = BoundedProcessor::new(batch, waiting);
    processor.set_resource(&resource());
    let processor = Arc::new(processor);
    agent_span::set_processor(Arc::clone(&processor));
    let limits = SpanLimits {
        max_attributes_per_span: MAX_ATTRIBUTES,
        // Events are logged, not exported as part of spans.
        max_events_per_span: 0,
        ..SpanLimits::default()
    };
    let provider = SdkTracerProvider::builder()
        .with_resource(resource())
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(traces.sample))))
        .with_span_limits(limits)
        .with_span_processor(SharedProcessor(Arc::clone(&processor)))
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("talon"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_level(false)
        // OpenTelemetry's own current context is not used.
        .with_context_activation(false)
        .with_filter(call_span_filter());
    ENABLED.store(true, Ordering::Relaxed);
    // A process exports to one collector.
    let _set = SAMPLE.set(traces.sample);
    Ok((layer, FlushGuard(provider)))
}

fn call_span_filter() -> FilterFn {
    // The spans have level ERROR, so that every log filter includes them. The hint keeps other events from
    // being enabled only for traces.
    let of_calls: fn(&Metadata<'_>) -> bool = |metadata| metadata.is_span() && metadata.target() == TARGET;
    FilterFn::new(of_calls).with_max_level_hint(LevelFilter::ERROR)
}

/// The resource that sends the spans. Nothing in it comes from the environment.
fn resource() -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", "talon"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ])
        .build()
}
