use std::path::Path;

use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, TraceFlags, TraceId, TraceState};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use opentelemetry_sdk::trace::{SpanEvents, SpanLinks, SpanProcessor};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response};

use super::*;
use crate::traces::bounded::{BoundedProcessor, MAX_QUEUED_SPANS, dropped};

fn span() -> SpanData {
    let (trace, id) = (TraceId::from(1), SpanId::from(1));
    let at = std::time::SystemTime::UNIX_EPOCH;
    SpanData {
        span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::default()),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: "call".into(),
        start_time: at,
        end_time: at,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: opentelemetry::trace::Status::Unset,
        instrumentation_scope: InstrumentationScope::default(),
    }
}

/// Takes all but two of each batch.
struct Picky;

#[tonic::async_trait]
impl TraceService for Picky {
    async fn export(
        &self,
        _: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let partial = ExportTracePartialSuccess { rejected_spans: 2, error_message: String::new() };
        Ok(Response::new(ExportTraceServiceResponse { partial_success: Some(partial) }))
    }
}

/// On a separate thread, because an exporter blocks on its own runtime.
fn picky(path: &Path) {
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let incoming = UnixListenerStream::new(tokio::net::UnixListener::from_std(listener).unwrap());
            let server = TraceServiceServer::new(Picky);
            drop(tonic::transport::Server::builder().serve_with_incoming(server, incoming).await);
        });
    });
}

/// Keeps spans for ever.
#[derive(Debug)]
struct Stuck;

impl SpanProcessor for Stuck {
    fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &opentelemetry::Context) {}
    fn on_end(&self, _: SpanData) {}
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }
    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// One test, because the count is the process's.
// Promises: TRACE-15
#[test]
fn what_is_not_taken_is_counted() {
    let waiting = QueuedSpans::default();
    let queue = BoundedProcessor::new(Stuck, waiting.clone());
    for _ in 0..MAX_QUEUED_SPANS + 3 {
        queue.on_end(span());
    }
    assert_eq!(dropped(), 3, "what the queue has no room for");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("otlp.sock");
    let otlp = OtlpExporter::new(Endpoint::Unix(path.clone()), waiting.clone()).unwrap();
    let export = |spans: usize| futures_now(otlp.export(vec![span(); spans]));
    assert!(export(4).is_err());
    assert_eq!(dropped(), 7, "what nobody is there for");

    picky(&path);
    assert!(export(5).is_ok());
    assert_eq!(dropped(), 9, "what the collector does not want");

    // What was sent makes room, whatever became of it.
    for _ in 0..10 {
        queue.on_end(span());
    }
    assert_eq!(dropped(), 10);
}

/// The future of an export is ready when it is made.
fn futures_now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("an export does not wait elsewhere"),
    }
}
