//! What of a server's messages is for the library, and what is for us.
//!
//! Answers are let through only to what was asked and is still waited for. Requests of the server are answered here: a
//! `ping` politely, everything else with a refusal, because no plugin may ask its caller for anything. Progress and news of
//! changed tools are handed on in the order in which they come.

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
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::progress::Progress;
use crate::text::cut;

/// Answers to a server's own requests that are being sent at once. A server that asks faster than it reads gets no
/// further ones.
const MAX_REPLIES: usize = 32;
/// Questions that wait for an answer. The supervisor admits far fewer calls, and what is given up waits no longer; beyond
/// this the oldest one, which will hardly be answered, counts as given up.
const MAX_PENDING: usize = 1024;
/// How much of a log message is passed on.
const MAX_LOG_BYTES: usize = 1000;

/// What stands for the answer of a server that gave none to `server/discover`.
pub(crate) const NO_ANSWER: &str = "no answer to server/discover";

/// The same of one that knows the question, and speaks older revisions only.
const OLDER: &str = "server/discover names older revisions only";

/// What a server tells unasked.
#[derive(Clone, Default)]
pub(crate) struct News {
    /// How far its calls are.
    pub(crate) progress: Progress,
    /// It offers other tools.
    pub(crate) tools_changed: Arc<Notify>,
}

/// A transport whose messages are looked at.
pub(crate) struct Screen<T> {
    inner: T,
    news: News,
    replies: Arc<Semaphore>,
    /// What was asked and not answered.
    pending: HashMap<RequestId, Asked>,
    /// How long the question whether the server speaks the current revision may go unanswered.
    patience: Duration,
    /// That question, and when it counts as answered.
    probe: Option<(RequestId, Instant)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Discover,
    Other,
}

impl<T: Transport<RoleClient>> Screen<T> {
    pub(crate) fn new(inner: T, news: News, patience: Duration) -> Self {
        let replies = Arc::new(Semaphore::new(MAX_REPLIES));
        Self { inner, news, replies, pending: HashMap::new(), patience, probe: None }
    }

    fn note_sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let asked = match &request.request {
                    ClientRequest::DiscoverRequest(_) => {
                        self.probe = Some((request.id.clone(), Instant::now() + self.patience));
                        Asked::Discover
                    }
                    _ => Asked::Other,
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

    /// Whether somebody waits for this answer; it waits no longer.
    fn take(&mut self, id: &RequestId) -> Option<Asked> {
        let asked = self.pending.remove(id).or_else(|| match id {
            NumberOrString::String(text) => self.pending.remove(&NumberOrString::Number(text.parse().ok()?)),
            NumberOrString::Number(_) => None,
        });
        match asked {
            Some(Asked::Discover) => self.probe = None,
            Some(Asked::Other) => {}
            None => tracing::debug!(%id, "an answer that nobody waits for is dropped"),
        }
        asked
    }

    /// What the library gets of a message.
    fn pass(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            ServerJsonRpcMessage::Response(response) => {
                let asked = self.take(&response.id)?;
                if asked == Asked::Discover && is_of_the_past(&response.result) {
                    return Some(is_legacy(response.id, OLDER));
                }
                Some(ServerJsonRpcMessage::Response(response))
            }
            ServerJsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    let asked = self.take(id)?;
                    if asked == Asked::Discover && names_a_past_version(&error.error) {
                        return Some(is_legacy(id.clone(), OLDER));
                    }
                }
                Some(ServerJsonRpcMessage::Error(error))
            }
            ServerJsonRpcMessage::Request(request) => {
                self.reply(request.id, &request.request);
                None
            }
            ServerJsonRpcMessage::Notification(notification) => {
                let told = notification.notification.get_meta().subscription_id().is_some()
                    || matches!(notification.notification, ServerNotification::CancelledNotification(_));
                if told {
                    return Some(ServerJsonRpcMessage::Notification(notification));
                }
                self.hear(notification.notification);
                None
            }
        }
    }

    fn hear(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                let told = progress.params;
                let message = told.message.unwrap_or_default();
                self.news.progress.report(&told.progress_token, told.progress, told.total, &message);
            }
            ServerNotification::ToolListChangedNotification(_) => self.news.tools_changed.notify_one(),
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

/// A log message of the server's. Read from JSON, because the library's type is on its way out.
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

/// A server that knows the question and not the revision is spoken to in an older one.
fn is_of_the_past(result: &ServerResult) -> bool {
    let ServerResult::DiscoverResult(discovered) = result else { return false };
    let versions = &discovered.supported_versions;
    !versions.contains(&ProtocolVersion::LATEST) && versions.iter().any(has_initialize)
}

/// The same, of one that refuses the question.
fn names_a_past_version(error: &ErrorData) -> bool {
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

/// Stands for the answer of a server that knows no `server/discover`: the library then goes on with `initialize`.
fn is_legacy(id: RequestId, why: &'static str) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
    ServerJsonRpcMessage::error(error, Some(id))
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Screen<T> {
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
                        self.take(&id);
                        return Some(is_legacy(id, NO_ANSWER));
                    }
                },
            };
            if let Some(message) = self.pass(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
