//! Calls to one process, over verified connections.

mod health;
mod link;
mod methods;
mod pending_call;
mod pool;
mod raw;
mod shared_stream;
mod status;
mod stdio;
mod streams;
mod unary;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::HeaderMap;
use http::uri::{PathAndQuery, Uri};
use prost::Message;
use talon_proto::goplugin;
use talon_proto::notices::event_source_client::EventSourceClient;
use talon_proto::notices::notices_client::NoticesClient;
use talon_proto::notices::{
    AcknowledgeEventsRequest, ListenRequest, Notice, PluginEvent, SubscribeEventsRequest,
};
use talon_proto::plugin::{PluginInitRequest, ToolCallRequest};
use talon_sanitize::{Sanitized, sanitized};
use talon_wire::frames::FrameFloodError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

pub use self::health::HealthStatus;
pub use self::link::LinkError;
pub use self::methods::Methods;
pub use self::pending_call::PendingCall;
use self::pool::{ConnectionLease, ConnectionPool};
pub use self::raw::RawCall;
use self::shared_stream::SharedStream;
pub use self::status::describe_status;
pub use self::stdio::{StdioPiece, StdioReader};
use talon_plugin_config::name::PluginName;

use self::streams::LinkService;
use self::unary::{ORIGIN, RequestHead};
use crate::capability::{self, Capability, CapabilityError};
use crate::connect::Target;
use crate::execute_error::ExecuteError;

/// The largest accepted notice, in bytes: a message of 1 KiB, a call's id, and enough for later fields. A
/// larger one ends the stream, which is then reopened after a pause.
const MAX_NOTICE_BYTES: usize = 16 << 10;

/// The largest accepted event, in bytes (`talon.plugin.v1`). A larger one ends the stream.
const MAX_EVENT_BYTES: usize = 64 << 10;

/// The largest answer of methods with small answers.
const SMALL_ANSWER_BYTES: usize = 64 << 10;

/// After so many offers of further services by go-plugin's broker, reading pauses: no offer is ever accepted,
/// a program makes a handful in each call, and reading more than a thousand a second would be wasted work.
const BROKER_OFFERS: u32 = 64;
const BROKER_PAUSE: Duration = Duration::from_millis(50);

const SHUTDOWN: PathAndQuery = PathAndQuery::from_static("/plugin.GRPCController/Shutdown");

/// Calls one process. Cheap to clone; dropping a call's future cancels it on the wire.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    plugin: PluginName,
    methods: Methods,
    /// The URI of most calls: cheap to clone, but not to build.
    execute: Uri,
    pool: ConnectionPool,
    /// The way to check this plugin's health, learned from its answers.
    health: AtomicU8,
    /// Cancelled when it is asked to shut down: closes the streams that are only held open for it.
    shutting_down: CancellationToken,
}

/// Why capabilities could not be read again.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// The plugin answered with an error, or not at all.
    #[error("its capabilities cannot be read: {0}")]
    Call(Sanitized),
    /// It has no such method: it serves something else, or `PluginService` under another name.
    #[error("it does not serve its capabilities: {0}")]
    Unimplemented(Sanitized),
    /// Its declaration is not allowed.
    #[error(transparent)]
    Refused(#[from] CapabilityError),
}

/// Why a plugin's Init failed.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// It would refuse the same settings again.
    #[error("{0}")]
    Refused(Sanitized),
    /// It failed, or was not reached.
    #[error("{0}")]
    Failed(Sanitized),
}

/// The result of a plugin's Init.
#[derive(Debug)]
pub enum InitOutcome {
    /// It received its settings.
    Done,
    /// It does not implement Init.
    Unimplemented,
}

impl Client {
    /// Opens the first connection. Under load up to `connections` are opened, one after the other, so that a
    /// plugin with a short backlog is not flooded.
    pub async fn connect(
        plugin: PluginName,
        methods: Methods,
        target: Target,
        connections: u32,
    ) -> Result<Self, LinkError> {
        let pool = ConnectionPool::open(target, connections).await?;
        let execute = unary::uri(&methods.execute);
        let inner = Inner {
            plugin,
            execute,
            methods,
            pool,
            health: AtomicU8::new(0),
            shutting_down: CancellationToken::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Resolves once the process has exceeded the [budget of frames](talon_wire::frames) of one of its
    /// connections, which is closed then.
    pub async fn flood(&self) -> FrameFloodError {
        *self.inner.pool.flooded.wait().await
    }

    /// Makes one call. The answer is the `ToolResultResponse` as the plugin encoded it, undecoded.
    pub fn execute(
        &self,
        message: &ToolCallRequest,
        metadata: MetadataMap,
        deadline: Option<Instant>,
        max_message_bytes: usize,
    ) -> PendingCall {
        let tap = SharedStream::default();
        let message = talon_wire::message::framed(message);
        let answer = self.clone().answer(message, metadata, deadline, max_message_bytes, tap.clone());
        PendingCall { answer: Box::pin(answer), stream_end: Box::pin(tap.drain_to_end()) }
    }

    async fn answer(
        self,
        message: Bytes,
        metadata: MetadataMap,
        deadline: Option<Instant>,
        max_message_bytes: usize,
        tap: SharedStream,
    ) -> Result<Bytes, ExecuteError> {
        let bytes = unary::message_bytes(&message);
        if bytes > max_message_bytes {
            let reason = sanitized!(
                "the call is {} bytes long, and max_message_bytes is {}",
                bytes,
                max_message_bytes
            );
            return Err(ExecuteError::Unavailable { reason, retryable: false });
        }
        let began = Instant::now();
        let timeout = match deadline {
            None => None,
            Some(deadline) => {
                let left = deadline.saturating_duration_since(began);
                if left.is_zero() {
                    return Err(ExecuteError::TimedOut { waited: began.elapsed(), sent: false });
                }
                Some(left)
            }
        };
        let head =
            RequestHead { uri: self.inner.execute.clone(), metadata: metadata.into_headers(), timeout };
        let answer = self.call(&head, message, max_message_bytes, &tap).await;
        answer.map_err(|status| {
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            status::into_error(&status, max_message_bytes, late, began.elapsed())
        })
    }

    /// Sends the plugin its settings.
    pub async fn init(
        &self,
        config: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<InitOutcome, InitError> {
        let config_json = serde_json::Value::Object(config.clone()).to_string();
        let request = PluginInitRequest { config_json };
        match self.unary(&self.inner.methods.init, &request, SMALL_ANSWER_BYTES, None).await {
            Ok(_) => Ok(InitOutcome::Done),
            Err(status) if status.code() == Code::Unimplemented => Ok(InitOutcome::Unimplemented),
            Err(status) => {
                let text = status::describe_status(&status);
                // Of the codes for a failure, these two say that the same request would fail again.
                let refused = matches!(status.code(), Code::InvalidArgument | Code::FailedPrecondition);
                Err(if refused { InitError::Refused(text) } else { InitError::Failed(text) })
            }
        }
    }

    /// Reads the plugin's capabilities.
    pub async fn capabilities(&self) -> Result<Arc<Capability>, RefreshError> {
        self.fetch_capabilities(&self.inner.methods.capabilities, None).await.map_err(|failed| match failed {
            FetchError::Refused(error) => error.into(),
            FetchError::Status(status) if status.code() == Code::Unimplemented => {
                RefreshError::Unimplemented(status::describe_status(&status))
            }
            FetchError::Status(status) => RefreshError::Call(status::describe_status(&status)),
        })
    }

    /// Asks the plugin to update its capabilities. `None`: it does not implement that.
    pub async fn refresh_capabilities(
        &self,
        timeout: Duration,
    ) -> Result<Option<Arc<Capability>>, RefreshError> {
        match self.fetch_capabilities(&self.inner.methods.refresh_capabilities, Some(timeout)).await {
            Ok(capability) => Ok(Some(capability)),
            Err(FetchError::Status(status)) if status.code() == Code::Unimplemented => Ok(None),
            Err(FetchError::Status(status)) => Err(RefreshError::Call(status::describe_status(&status))),
            Err(FetchError::Refused(error)) => Err(error.into()),
        }
    }

    async fn fetch_capabilities(
        &self,
        path: &PathAndQuery,
        timeout: Option<Duration>,
    ) -> Result<Arc<Capability>, FetchError> {
        let answer = self.unary(path, &(), capability::MAX_MESSAGE_BYTES, timeout).await;
        let message = answer.map_err(FetchError::Status)?;
        let names = self.inner.methods.action_names;
        Capability::decode_with(&message, &self.inner.plugin, names)
            .map(Arc::new)
            .map_err(FetchError::Refused)
    }

    /// Asks the plugin to end. go-plugin stops its server inside the handler, so a connection that breaks
    /// counts as a yes; a plugin that does not implement the call says no.
    pub async fn shutdown(&self, timeout: Duration) -> bool {
        // Closed first, like go-plugin's own host does: a program that waits for its open streams would wait
        // forever.
        self.inner.shutting_down.cancel();
        match self.unary(&SHUTDOWN, &(), SMALL_ANSWER_BYTES, Some(timeout)).await {
            Ok(_) => true,
            Err(status) if std::error::Error::source(&status).is_some() => true,
            Err(status) => status.code() == Code::Unavailable,
        }
    }

    /// Holds go-plugin's broker open until its stream ends or the plugin is asked to end: a program that
    /// offers a further service waits until the offer is read. Offers are discarded, because such services
    /// are never called. False: the program has no broker.
    pub async fn drain_broker(&self) -> bool {
        let call = LinkService::new(self.inner.pool.first());
        let mut client = goplugin::grpc_broker_client::GrpcBrokerClient::with_origin(call, ORIGIN.clone())
            .max_decoding_message_size(SMALL_ANSWER_BYTES);
        // The supervisor offers no service, so it sends nothing. Its side stays open until the end, because
        // closing it would close the stream.
        let ending = self.inner.shutting_down.clone().cancelled_owned();
        let nothing = futures_util::stream::pending().take_until(Box::pin(ending));
        let drain = async {
            let mut offers = match client.start_stream(nothing).await {
                Ok(stream) => stream.into_inner(),
                Err(status) => return status.code() != Code::Unimplemented,
            };
            let mut taken = 0;
            loop {
                match offers.message().await {
                    Ok(Some(_)) => taken += 1,
                    Ok(None) => return true,
                    Err(status) => return status.code() != Code::Unimplemented,
                }
                // Offers without end are read slowly, so that the plugin waits and the supervisor does not do
                // useless work.
                if taken % BROKER_OFFERS == 0 {
                    tokio::time::sleep(BROKER_PAUSE).await;
                }
            }
        };
        self.inner.shutting_down.run_until_cancelled(drain).await.unwrap_or(false)
    }

    /// The notices of the process, until it is asked to end, the connection ends, or an invalid message
    /// comes. `None`: it does not serve notices, or was asked to end.
    pub async fn notices(&self) -> Option<BoxStream<'static, Notice>> {
        let valid = self.notice_results().await?.take_while(|notice| std::future::ready(notice.is_ok()));
        Some(valid.filter_map(|notice| std::future::ready(notice.ok())).boxed())
    }

    /// The same with the error that ends them as the last item. Some servers send UNIMPLEMENTED after they have opened the stream.
    pub async fn notice_results(&self) -> Option<BoxStream<'static, Result<Notice, Status>>> {
        if self.inner.shutting_down.is_cancelled() {
            return None;
        }
        let call = LinkService::new(self.inner.pool.first());
        let mut client =
            NoticesClient::with_origin(call, ORIGIN.clone()).max_decoding_message_size(MAX_NOTICE_BYTES);
        self.until_shutdown(client.listen(ListenRequest {}).await)
    }

    /// The events of the process, as [`Client::notice_results`].
    pub async fn events(&self) -> Option<BoxStream<'static, Result<PluginEvent, Status>>> {
        if self.inner.shutting_down.is_cancelled() {
            return None;
        }
        self.until_shutdown(self.event_source().subscribe(SubscribeEventsRequest {}).await)
    }

    /// A stream until the process is asked to end; `None` if it is not served.
    fn until_shutdown<T: Send + 'static>(
        &self,
        opened: Result<tonic::Response<tonic::Streaming<T>>, Status>,
    ) -> Option<BoxStream<'static, Result<T, Status>>> {
        match opened {
            Ok(stream) => {
                let ending = self.inner.shutting_down.clone().cancelled_owned();
                Some(stream.into_inner().take_until(Box::pin(ending)).boxed())
            }
            Err(status) if status.code() == Code::Unimplemented => None,
            Err(status) => Some(futures_util::stream::iter([Err(status)]).boxed()),
        }
    }

    /// Acknowledges events.
    ///
    /// # Errors
    /// The process's answer, or that there is none within the timeout.
    pub async fn acknowledge_events(
        &self,
        acknowledged: AcknowledgeEventsRequest,
        timeout: Duration,
    ) -> Result<(), Status> {
        let mut source = self.event_source();
        match tokio::time::timeout(timeout, source.acknowledge(acknowledged)).await {
            Ok(answer) => answer.map(drop),
            Err(_) => Err(Status::deadline_exceeded("it does not answer")),
        }
    }

    fn event_source(&self) -> EventSourceClient<LinkService> {
        let call = LinkService::new(self.inner.pool.first());
        EventSourceClient::with_origin(call, ORIGIN.clone()).max_decoding_message_size(MAX_EVENT_BYTES)
    }

    /// One call whose stream has no other holder.
    async fn unary(
        &self,
        path: &PathAndQuery,
        message: &impl Message,
        max_answer_bytes: usize,
        timeout: Option<Duration>,
    ) -> Result<Bytes, Status> {
        let head = RequestHead { uri: unary::uri(path), metadata: HeaderMap::new(), timeout };
        self.call(&head, talon_wire::message::framed(message), max_answer_bytes, &SharedStream::default())
            .await
    }

    /// Makes one call on the least used connection. It is cancelled on the wire when it times out or is
    /// dropped, unless the stream has another holder.
    async fn call(
        &self,
        head: &RequestHead,
        message: Bytes,
        max_answer_bytes: usize,
        tap: &SharedStream,
    ) -> Result<Bytes, Status> {
        let used = self.least_used();
        let timeout = head.timeout;
        let call = pin!(unary::call(used.link, tap, head, message, max_answer_bytes));
        match timeout {
            // The supervisor's own clock: the plugin may ignore the header, and waiting for a connection
            // counts, too.
            Some(timeout) => tokio::time::timeout(timeout, call)
                .await
                .unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time"))),
            None => call.await,
        }
    }

    /// The connection with the fewest calls; if even that one has many, another is opened in the background.
    fn least_used(&self) -> ConnectionLease<'_> {
        let used = self.inner.pool.least_used();
        if self.inner.pool.claim_opening(&used) && !self.inner.shutting_down.is_cancelled() {
            let inner = self.inner.clone();
            tokio::spawn(async move {
                inner.shutting_down.run_until_cancelled(inner.pool.open_another()).await;
            });
        }
        used
    }
}

enum FetchError {
    Status(Status),
    Refused(CapabilityError),
}

#[cfg(test)]
mod broker_tests;
#[cfg(test)]
mod late_tests;
#[cfg(test)]
mod tests;
