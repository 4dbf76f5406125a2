//! Calls whose answers are returned as undecoded bytes.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::uri::PathAndQuery;
use talon_proto::notices::{AcknowledgeEventsRequest, Notice, PluginEvent};
use talon_sanitize::{Sanitized, sanitized};
use tonic::{Code, Status};

use talon_plugin_client::{Client, ExecuteError, RawCall, describe_status};
use talon_plugin_config::spec::PluginSpec;

/// How long the head of a stream is waited for. Some servers, such as gRPC's for Python, send it with the first message.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);

type ResultStream<T> = BoxStream<'static, Result<T, Status>>;

/// The connections to one process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RawClient {
    client: Client,
    service: String,
}

/// Options of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallOptions {
    /// The deadline in its header.
    pub timeout: Option<Duration>,
    /// How long to wait for the answer before the stream is reset.
    pub response_timeout: Duration,
    /// The largest accepted answer, in bytes.
    pub max_answer_bytes: usize,
}

impl RawClient {
    pub(super) fn new(client: Client, spec: &PluginSpec) -> Self {
        let service = match talon_plugin_config::bridge::Bridge::for_plugin(spec) {
            // A bridge is built with our SDK, whatever program is behind it.
            Some(_) => talon_plugin_config::spec::DEFAULT_SERVICE.to_owned(),
            None => spec.service.clone(),
        };
        Self { client, service }
    }

    /// Calls a method of `PluginService`, such as `Execute`, under the plugin's name for the service.
    /// Dropping the future resets the stream.
    ///
    /// # Errors
    /// [`ExecuteError`]: a status from the plugin, no answer in time, or a broken connection.
    pub async fn call(&self, method: &str, message: Bytes, call: CallOptions) -> Result<Bytes, ExecuteError> {
        self.call_path(&format!("/{}/{method}", self.service), message, call).await
    }

    /// Calls any method by its full path.
    ///
    /// # Errors
    /// As for [`RawClient::call`].
    pub async fn call_path(
        &self,
        path: &str,
        message: Bytes,
        call: CallOptions,
    ) -> Result<Bytes, ExecuteError> {
        let Ok(path) = PathAndQuery::try_from(path) else {
            let message = sanitized!("the name of its service makes no path: correct its `service`");
            return Err(ExecuteError::Status { code: Code::Unimplemented, message });
        };
        let CallOptions { timeout, response_timeout: patience, max_answer_bytes } = call;
        self.client.raw(RawCall { path, message, timeout, patience, max_answer_bytes }).await
    }

    /// Its notices from now on; an error is the last item. `None` if it has none.
    pub async fn notices(&self) -> Option<ResultStream<Notice>> {
        let client = self.client.clone();
        opened(async move { client.notice_results().await }).await
    }

    /// The events that it tells; an error is the last item. `None` if it tells none.
    pub async fn events(&self) -> Option<ResultStream<PluginEvent>> {
        let client = self.client.clone();
        opened(async move { client.events().await }).await
    }

    /// Acknowledges events.
    ///
    /// # Errors
    /// Its answer, or that there is none within the timeout.
    pub async fn acknowledge_events(&self, ids: Vec<String>, timeout: Duration) -> Result<(), Sanitized> {
        let acknowledged = AcknowledgeEventsRequest { ids, refused: Vec::new() };
        let answer = self.client.acknowledge_events(acknowledged, timeout).await;
        answer.map_err(|status| describe_status(&status))
    }

    /// Asks it to stop with go-plugin's `Shutdown`; false if it does not implement that.
    pub async fn shutdown(&self, within: Duration) -> bool {
        self.client.shutdown(within).await
    }
}

/// The stream, as soon as its head is there, and otherwise after [`HEAD_TIMEOUT`]: then its items wait for the head.
async fn opened<T: Send + 'static>(
    opening: impl Future<Output = Option<ResultStream<T>>> + Send + 'static,
) -> Option<ResultStream<T>> {
    let mut opening = Box::pin(opening);
    if let Ok(stream) = tokio::time::timeout(HEAD_TIMEOUT, &mut opening).await {
        return stream;
    }
    let none = || stream::iter([Err(Status::unimplemented("it has no such stream"))]).boxed();
    Some(stream::once(opening).flat_map(move |stream| stream.unwrap_or_else(none)).boxed())
}
