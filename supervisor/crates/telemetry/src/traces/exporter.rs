//! OTLP over gRPC, to a unix socket or a port of this machine.

use std::future::{Future, ready};
use std::io;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use parking_lot::Mutex;
use talon_error_chain::innermost;
use talon_sanitize::Raw;
use talon_wire::Connector;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::{Channel, Uri};

use super::attributes::to_exported;
use super::bounded::{QueuedSpans, count_dropped};
use super::endpoint::Endpoint;

/// The time limit for one batch, including the connection. Meanwhile the next spans wait in their queue.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer of a collector: a few numbers and a message.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// The interval between log messages about lost spans.
const LOSS_REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// The longest part of a collector's message that is logged.
const MAX_REASON_BYTES: usize = 200;

/// Sends batches, one after the other.
#[derive(Debug)]
pub(super) struct OtlpExporter {
    endpoint: Endpoint,
    waiting: QueuedSpans,
    resource: ResourceAttributesWithSchema,
    /// The batch thread has no runtime, and the supervisor's may not exist yet.
    runtime: Runtime,
    loss_report: Mutex<LossReport>,
}

#[derive(Debug, Default)]
struct LossReport {
    at: Option<Instant>,
    lost: u64,
}

impl OtlpExporter {
    pub(super) fn new(endpoint: Endpoint, waiting: QueuedSpans) -> io::Result<Self> {
        Ok(Self {
            endpoint,
            waiting,
            resource: ResourceAttributesWithSchema::default(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            loss_report: Mutex::default(),
        })
    }

    /// Sends a batch. Returns how many spans the collector rejected.
    async fn send(&self, batch: Vec<SpanData>) -> Result<u64, Status> {
        // A new connection each time: there is one batch a second, and no broken connection to handle.
        let channel =
            self.connect().await.map_err(|error| Status::unavailable(innermost(&error).to_string()))?;
        let mut client = TraceServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES);
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let answer = client.export(ExportTraceServiceRequest { resource_spans }).await?.into_inner();
        let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
        Ok(u64::try_from(rejected).unwrap_or(0))
    }

    async fn connect(&self) -> Result<Channel, tonic::transport::Error> {
        // Only sent as a header: the connector knows the address.
        let origin = Channel::builder(Uri::from_static("http://localhost"));
        let connector = match self.endpoint.clone() {
            Endpoint::Unix(path) => Connector::new(move || UnixStream::connect(path.clone())),
            Endpoint::Loopback(address) => Connector::new(move || TcpStream::connect(address)),
        };
        connector.connect(origin).await
    }

    /// Counts lost spans, and logs them at most once in [`LOSS_REPORT_INTERVAL`].
    fn report_loss(&self, lost: u64, why: &str) {
        count_dropped(lost);
        let mut complained = self.loss_report.lock();
        complained.lost += lost;
        if complained.at.is_none_or(|at| at.elapsed() >= LOSS_REPORT_INTERVAL) {
            complained.at = Some(Instant::now());
            let spans = std::mem::take(&mut complained.lost);
            let (endpoint, why) = (&self.endpoint, Raw::from(why).line_within(MAX_REASON_BYTES));
            tracing::warn!(
                spans,
                %endpoint,
                "traces are lost: {why}; see whether the collector listens there (traces.endpoint)"
            );
        }
    }
}

impl SpanExporter for OtlpExporter {
    /// Blocks; called on the batch thread, which has nothing else to do.
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.waiting.remove(batch.len());
        let count = batch.len() as u64;
        let batch = batch.into_iter().map(to_exported).collect();
        let sent =
            self.runtime.block_on(async { tokio::time::timeout(EXPORT_TIMEOUT, self.send(batch)).await });
        ready(match sent {
            Ok(Ok(0)) => Ok(()),
            Ok(Ok(rejected)) => {
                self.report_loss(rejected.min(count), "the collector rejects them");
                Ok(())
            }
            Ok(Err(status)) => {
                self.report_loss(count, &format!("{:?}: {}", status.code(), status.message()));
                Err(OTelSdkError::InternalFailure("not sent".to_owned()))
            }
            Err(_) => {
                self.report_loss(count, "the collector does not answer in time");
                Err(OTelSdkError::Timeout(EXPORT_TIMEOUT))
            }
        })
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

#[cfg(test)]
#[path = "exporter_tests.rs"]
mod tests;
