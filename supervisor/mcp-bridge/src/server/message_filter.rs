//! Decides which of a server's messages the library gets, and which the bridge handles.
//!
//! A response passes only if its request is still pending. Requests of the server are answered here: a `ping`
//! with success, everything else with an error, because no plugin may ask its caller for anything. Progress
//! and notifications of changed tools are passed on in the order in which they arrive.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, ErrorCode, ErrorData, GetMeta,
    NumberOrString, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest,
    ServerResult,
};
use rmcp::transport::Transport;
use serde_json::Value;
use talon_bridge::text::cut;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::progress::Progress;

/// Replies to a server's own requests that are being sent at once. A server that asks faster than it reads
/// gets no further ones.
const MAX_REPLIES: usize = 32;
/// Requests that wait for a response. The supervisor admits far fewer calls, and a cancelled one is no longer
/// pending; beyond this the oldest, which will hardly be answered, counts as cancelled.
const MAX_PENDING: usize = 1024;
/// How much of a log message is passed on.
const MAX_LOG_BYTES: usize = 1000;

/// Replaces the response of a server that did not answer `server/discover`.
pub(crate) const NO_ANSWER: &str = "no answer to server/discover";

/// The same for one that answers it, but supports older revisions only.
const LEGACY_ONLY: &str = "server/discover names older revisions only";

/// Notifications of a server.
#[derive(Clone, Default)]
pub(crate) struct Updates {
    /// The progress of its calls.
    pub(crate) progress: Progress,
    /// Its tools changed.
    pub(crate) tools_changed: Arc<Notify>,
}

/// A transport that filters its messages.
pub(crate) struct MessageFilter<T> {
    inner: T,
    updates: Updates,
    replies: Arc<Semaphore>,
    /// Requests without a response.
    pending: HashMap<RequestId, PendingRequest>,
    /// How long the probe for the current revision may go unanswered.
    probe_timeout: Duration,
    /// The probe, and when it counts as answered.
    probe: Option<(RequestId, Instant)>,
}

#[derive(Clone, Copy, PartialEq)]
enum PendingRequest {
    Discover,
    Other,
}

impl<T: Transport<RoleClient>> MessageFilter<T> {
    pub(crate) fn new(inner: T, updates: Updates, probe_timeout: Duration) -> Self {
        let replies = Arc::new(Semaphore::new(MAX_REPLIES));
        Self { inner, updates, replies, pending: HashMap::new(), probe_timeout, probe: None }
    }

    fn note_sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let asked = match &request.request {
                    ClientRequest::DiscoverRequest(_) => {
                        self.probe = Some((request.id.clone(), Instant::now() + self.probe_timeout));
                        PendingRequest::Discover
                    }
                    _ => PendingRequest::Other,
                };
                if self.pending.len() >= MAX_PENDING
                    && let Some(oldest) = self.pending.keys().min_by_key(|id| number(id)).cloned()
                {
                    self.pending.remove(&oldest);
                }
                self.pending.insert(request.id.clone(), asked);
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.pending.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Takes the pending request of a response, if there is one.
    fn take_pending(&mut self, id: &RequestId) -> Option<PendingRequest> {
        let asked = self.pending.remove(id).or_else(|| match id {
            NumberOrString::String(text) => self.pending.remove(&NumberOrString::Number(text.parse().ok()?)),
            NumberOrString::Number(_) => None,
        });
        match asked {
            Some(PendingRequest::Discover) => self.probe = None,
            Some(PendingRequest::Other) => {}
            None => tracing::debug!(%id, "a response without a pending request is dropped"),
        }
        asked
    }

    /// The message that the library gets, if any.
    fn filter(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            ServerJsonRpcMessage::Response(response) => {
                let asked = self.take_pending(&response.id)?;
                if asked == PendingRequest::Discover && is_legacy_result(&response.result) {
                    return Some(legacy_error(response.id, LEGACY_ONLY));
                }
                Some(ServerJsonRpcMessage::Response(response))
            }
            ServerJsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    let asked = self.take_pending(id)?;
                    if asked == PendingRequest::Discover && is_legacy_error(&error.error) {
                        return Some(legacy_error(id.clone(), LEGACY_ONLY));
                    }
                }
                Some(ServerJsonRpcMessage::Error(error))
            }
            ServerJsonRpcMessage::Request(request) => {
                self.reply(request.id, &request.request);
                None
            }
            ServerJsonRpcMessage::Notification(notification) => {
                let is_for_client = notification.notification.get_meta().subscription_id().is_some()
                    || matches!(notification.notification, ServerNotification::CancelledNotification(_));
                if is_for_client {
                    return Some(ServerJsonRpcMessage::Notification(notification));
                }
                self.handle_notification(notification.notification);
                None
            }
        }
    }

    fn handle_notification(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                let params = progress.params;
                let message = params.message.unwrap_or_default();
                self.updates.progress.report(&params.progress_token, params.progress, params.total, &message);
            }
            ServerNotification::ToolListChangedNotification(_) => self.updates.tools_changed.notify_one(),
            ServerNotification::LoggingMessageNotification(log) => {
                log_line(&serde_json::to_value(&log.params).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn reply(&mut self, id: RequestId, request: &ServerRequest) {
        let reply = match request {
            ServerRequest::PingRequest(_) => ClientJsonRpcMessage::response(ClientResult::empty(()), id),
            _ => {
                tracing::info!(
                    "the MCP server asks for what plugins do not get (sampling, roots, elicitation): refused"
                );
                let error = ErrorData::new(
                    ErrorCode::METHOD_NOT_FOUND,
                    "this client offers no sampling, no roots and no elicitation",
                    None,
                );
                ClientJsonRpcMessage::error(error, Some(id))
            }
        };
        let Ok(permit) = self.replies.clone().try_acquire_owned() else {
            tracing::warn!("the MCP server asks faster than it reads answers: a request of its is dropped");
            return;
        };
        let send = self.inner.send(reply);
        tokio::spawn(async move {
            if send.await.is_err() {
                tracing::debug!("a request of the MCP server could not be answered");
            }
            drop(permit);
        });
    }
}

/// Our ids count upwards.
fn number(id: &RequestId) -> i64 {
    match id {
        NumberOrString::Number(number) => *number,
        NumberOrString::String(_) => i64::MAX,
    }
}

/// Logs a log message of the server. Read from JSON, because the library's type is being phased out.
fn log_line(params: &Value) {
    let text = match params.get("data") {
        Some(Value::String(text)) => cut(text, MAX_LOG_BYTES),
        Some(other) => cut(&other.to_string(), MAX_LOG_BYTES),
        None => return,
    };
    match params.get("level").and_then(Value::as_str) {
        Some("debug") => tracing::debug!("{text}"),
        Some("warning") => tracing::warn!("{text}"),
        Some("error" | "critical" | "alert" | "emergency") => tracing::error!("{text}"),
        _ => tracing::info!("{text}"),
    }
}

/// A server that answers the probe but not with the current revision is used with an older one.
fn is_legacy_result(result: &ServerResult) -> bool {
    let ServerResult::DiscoverResult(discovered) = result else { return false };
    let versions = &discovered.supported_versions;
    !versions.contains(&ProtocolVersion::LATEST) && versions.iter().any(has_initialize)
}

/// The same for a server that refuses the probe.
fn is_legacy_error(error: &ErrorData) -> bool {
    let supported =
        error.data.as_ref().and_then(|data| data.get("supported")).and_then(|list| list.as_array());
    error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        && supported.is_some_and(|versions| {
            let known = |version: &Value| serde_json::from_value::<ProtocolVersion>(version.clone()).ok();
            let versions: Vec<_> = versions.iter().filter_map(known).collect();
            !versions.contains(&ProtocolVersion::LATEST) && versions.iter().any(has_initialize)
        })
}

fn has_initialize(version: &ProtocolVersion) -> bool {
    ProtocolVersion::KNOWN_VERSIONS.contains(version) && version.has_initialize()
}

/// Replaces the response of a server without `server/discover`: the library then continues with `initialize`.
fn legacy_error(id: RequestId, why: &'static str) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
    ServerJsonRpcMessage::error(error, Some(id))
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for MessageFilter<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note_sent(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match self.probe.clone() {
                None => self.inner.receive().await?,
                Some((id, until)) => tokio::select! {
                    message = self.inner.receive() => message?,
                    () = sleep_until(until) => {
                        tracing::info!("the MCP server does not answer server/discover: trying initialize");
                        self.take_pending(&id);
                        return Some(legacy_error(id, NO_ANSWER));
                    }
                },
            };
            if let Some(message) = self.filter(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
#[path = "message_filter_tests.rs"]
mod tests;
