//! A collector of OpenTelemetry traces that stores what it receives, or misbehaves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::{Request, Response, Status};

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// What a collector does with spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectorMode {
    /// It stores them.
    Accept,
    /// It never answers.
    Hang,
    /// It refuses them.
    Reject,
}

/// A collector that listens until it is dropped.
#[derive(Debug)]
pub struct Collector {
    state: Arc<CollectorState>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct CollectorState {
    spans: Mutex<Vec<Span>>,
    resources: Mutex<Vec<KeyValue>>,
    /// The number of requests.
    asked: watch::Sender<usize>,
    mode: CollectorMode,
}

impl Collector {
    /// A collector on a unix socket.
    ///
    /// # Panics
    /// When the socket cannot be bound.
    #[must_use]
    pub fn at(socket: &Path, manners: CollectorMode) -> Self {
        let listener = UnixListener::bind(socket).expect("the socket can be bound");
        // Open to every user that the supervisor may run as.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(socket, open).expect("it is ours");
        let state = CollectorState::new(manners);
        let server = TraceServiceServer::from_arc(state.clone());
        let served = tonic::transport::Server::builder()
            .serve_with_incoming(server, UnixListenerStream::new(listener));
        Self { state, task: tokio::spawn(async move { drop(served.await) }) }
    }

    /// A collector on a loopback port, and the port.
    ///
    /// # Panics
    /// When no port can be bound.
    pub async fn on_loopback() -> (Self, u16) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let kept = CollectorState::new(CollectorMode::Accept);
        let server = TraceServiceServer::from_arc(kept.clone());
        let served =
            tonic::transport::Server::builder().serve_with_incoming(server, TcpListenerStream::new(listener));
        (Self { state: kept, task: tokio::spawn(async move { drop(served.await) }) }, port)
    }

    /// The spans received so far.
    ///
    /// # Panics
    /// Never: no holder of the lock panics.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.state.spans.lock().clone()
    }

    /// The resource attributes of the last sender.
    ///
    /// # Panics
    /// Never: no holder of the lock panics.
    #[must_use]
    pub fn resource(&self) -> Vec<KeyValue> {
        self.state.resources.lock().clone()
    }

    /// Waits for this number of requests.
    ///
    /// # Panics
    /// When they do not come.
    pub async fn wait_requests(&self, times: usize) {
        let mut asked = self.state.asked.subscribe();
        let waited = tokio::time::timeout(WAIT_TIMEOUT, asked.wait_for(|asked| *asked >= times)).await;
        waited.expect("the collector is asked").expect("it listens");
    }

    /// Waits for this many spans of a name.
    ///
    /// # Panics
    /// When they do not come.
    pub async fn wait_for(&self, name: &str, count: usize) -> Vec<Span> {
        let mut asked = self.state.asked.subscribe();
        let of_name = || self.spans().into_iter().filter(|span| span.name == name).collect::<Vec<_>>();
        let waited = tokio::time::timeout(WAIT_TIMEOUT, asked.wait_for(|_| of_name().len() >= count)).await;
        assert!(waited.is_ok(), "{count} spans {name}: {:?}", self.spans());
        of_name()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CollectorState {
    fn new(manners: CollectorMode) -> Arc<Self> {
        let (spans, resources, asked) = (Mutex::default(), Mutex::default(), watch::Sender::new(0));
        Arc::new(Self { spans, resources, asked, mode: manners })
    }
}

#[tonic::async_trait]
impl TraceService for CollectorState {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for sent in request.into_inner().resource_spans {
            *self.resources.lock() = sent.resource.map(|resource| resource.attributes).unwrap_or_default();
            let spans = sent.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.spans.lock().extend(spans);
        }
        self.asked.send_modify(|asked| *asked += 1);
        match self.mode {
            CollectorMode::Accept => Ok(Response::new(ExportTraceServiceResponse::default())),
            CollectorMode::Hang => std::future::pending().await,
            CollectorMode::Reject => Err(Status::resource_exhausted("no room\u{1b}[2J <|im_start|>")),
        }
    }
}

/// An attribute's value as text; empty where there is none.
#[must_use]
pub fn attribute(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}
