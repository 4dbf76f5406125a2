//! Traces of calls, sent by OTLP to a collector on this machine.
//!
//! Two spans make up a call: `call`, which its guard stack begins, and `plugin` in it, around the request to the plugin.
//! Both are spans of `tracing` with the target [`TARGET`]; nothing else is exported, and of these only the fields that
//! `attributes` names, bounded and inert.
//!
//! ```text
//! span ends ─► queue, MAX_QUEUED_SPANS ─► batch, a thread of its own ─► collector
//!                  full: dropped, counted          gone, hangs: dropped, counted, said once a minute
//! ```
//!
//! Without an endpoint there is no layer, and a call's trace context is handed on to its plugin as it came.

mod attributes;
mod bounded;
mod context;
mod endpoint;
mod exporter;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanLimits,
};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::registry::LookupSpan;

pub use self::context::CallTrace;
pub use self::endpoint::{BadEndpoint, Endpoint};

use self::bounded::{Bounded, Waiting};
use self::exporter::Otlp;

/// The target of the spans that are exported.
pub const TARGET: &str = "talon::call";

/// Spans that wait to be sent. 2,048: a thousand calls, some 2 MiB. At the limit spans are dropped and counted.
const MAX_QUEUED_SPANS: usize = 2048;
/// Spans that are sent together.
const MAX_BATCH_SPANS: usize = 512;
/// How long a span waits for others to be sent along with.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// How long the end of the process waits for a collector that does not take what is left.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Attributes of a span; ours have a dozen. More are dropped by the SDK.
const MAX_ATTRIBUTES: u32 = 32;

/// Whether this process exports traces; what came with a call is handed on either way.
static ON: AtomicBool = AtomicBool::new(false);

/// Where traces go, and which.
#[derive(Debug, Clone, PartialEq)]
pub struct Traces {
    /// Where the collector listens.
    pub endpoint: Endpoint,
    /// The share of calls that are traced where the caller has not decided, from 0 to 1.
    pub sample: f64,
}

/// How many spans of this process were dropped, because they came faster than they were sent or the collector did not
/// take them.
#[must_use]
pub fn spans_dropped() -> u64 {
    bounded::dropped()
}

/// Sends what is left when it is dropped, for at most [`FLUSH_TIMEOUT`].
pub(crate) struct Flush(SdkTracerProvider);

impl Drop for Flush {
    fn drop(&mut self) {
        // Whatever is left when the time is over is lost: the end of the process is worth more.
        let _ = self.0.shutdown_with_timeout(FLUSH_TIMEOUT);
    }
}

/// Begins exporting, with a thread of its own.
pub(crate) fn layer<S>(traces: &Traces) -> std::io::Result<(impl Layer<S> + use<S>, Flush)>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let waiting = Waiting::default();
    let otlp = Otlp::new(traces.endpoint.clone(), waiting.clone())?;
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(MAX_QUEUED_SPANS)
        .with_max_export_batch_size(MAX_BATCH_SPANS)
        .with_scheduled_delay(BATCH_DELAY)
        .build();
    let batch = BatchSpanProcessor::builder(otlp).with_batch_config(config).build();
    let limits = SpanLimits {
        max_attributes_per_span: MAX_ATTRIBUTES,
        // Logs are logs: no event becomes part of a span.
        max_events_per_span: 0,
        ..SpanLimits::default()
    };
    let provider = SdkTracerProvider::builder()
        .with_resource(resource())
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(traces.sample))))
        .with_span_limits(limits)
        .with_span_processor(Bounded::new(batch, waiting))
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("talon"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_level(false)
        // Nobody asks for OpenTelemetry's own current context.
        .with_context_activation(false)
        .with_filter(of_calls());
    ON.store(true, Ordering::Relaxed);
    Ok((layer, Flush(provider)))
}

fn of_calls() -> FilterFn {
    // The spans have the level of errors, so that no line of a call lacks them. The hint keeps everything else from being
    // enabled on behalf of traces.
    let of_calls: fn(&Metadata<'_>) -> bool = |metadata| metadata.is_span() && metadata.target() == TARGET;
    FilterFn::new(of_calls).with_max_level_hint(LevelFilter::ERROR)
}

/// What sends the spans. Nothing of it comes from the environment.
fn resource() -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", "talon"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ])
        .build()
}
