//! Decides which of a server's messages the library gets, and which the bridge handles.
//!
//! A response passes only if its request is still pending. Requests of the server are answered here: a `ping`
//! with success, `roots/list` with what the operator wrote, everything else with an error; only `elicitation/create` is for the
//! library's client. Progress and notifications of changes are passed on in the order in which they arrive.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, CustomResult, ErrorCode,
    ErrorData, GetMeta, NumberOrString, RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest,
    ServerResult,
};
use rmcp::transport::Transport;
use serde_json::Value;
use talon_bridge::text::cut;
use talon_sdk::Notifier;
use tokio::sync::{Notify, Semaphore};

use super::progress::Progress;
use super::resource_updates::ResourceUpdates;
use crate::roots::Roots;

/// Replies to a server's own requests that are being sent at once. A server that asks faster than it reads
/// gets no further ones.
const MAX_REPLIES: usize = 32;
/// Requests that wait for a response. The supervisor admits far fewer calls, and a cancelled one is no longer
/// pending; beyond this the oldest, which will hardly be answered, counts as cancelled.
const MAX_PENDING: usize = 1024;
/// Questions to a user that are open at once; a call has one at most. Further ones are refused.
const MAX_QUESTIONS: usize = 8;
/// How much of a log message is passed on.
const MAX_LOG_BYTES: usize = 1000;

/// Notifications of a server.
#[derive(Clone, Default)]
pub(crate) struct Updates {
    /// The progress of its calls.
    pub(crate) progress: Progress,
    /// Its tools changed.
    pub(crate) tools_changed: Arc<Notify>,
    /// Its resources or prompts changed.
    pub(crate) lists_changed: ListsChanged,
    /// A resource changed that somebody follows.
    pub(crate) resources: ResourceUpdates,
}

/// Passes on that a server lists other resources or prompts. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ListsChanged(Arc<OnceLock<Notifier>>);

impl ListsChanged {
    /// From now on the host is notified. What changed before needs no notice: the host knows nothing of it yet.
    pub(crate) fn attach(&self, notifier: Notifier) {
        let _ = self.0.set(notifier);
    }

    /// Takes a notification of the server; whether it was one of these.
    pub(crate) fn take(&self, notification: &ServerNotification) -> bool {
        let (resources, prompts) = match notification {
            ServerNotification::ResourceListChangedNotification(_) => (true, false),
            ServerNotification::PromptListChangedNotification(_) => (false, true),
            _ => return false,
        };
        if let Some(notifier) = self.0.get() {
            notifier.lists_changed(resources, prompts);
        }
        true
    }
}

/// A transport that filters its messages.
pub(crate) struct MessageFilter<T> {
    inner: T,
    updates: Updates,
    replies: Arc<Semaphore>,
    roots: Roots,
    /// Whether the server may ask models.
    sampling: bool,
    /// Requests without a response.
    pending: HashSet<RequestId>,
    /// The server's questions without an answer.
    questions: HashSet<RequestId>,
    /// The answer to the library's first request, if the bridge has it already.
    known_answer: Option<ServerResult>,
    /// The same once the request came, until it is received.
    ready: Option<ServerJsonRpcMessage>,
}

impl<T: Transport<RoleClient>> MessageFilter<T> {
    pub(crate) fn new(inner: T, updates: Updates) -> Self {
        let replies = Arc::new(Semaphore::new(MAX_REPLIES));
        let (roots, pending) = (Roots::default(), HashSet::new());
        let questions = HashSet::new();
        Self {
            inner,
            updates,
            replies,
            roots,
            sampling: false,
            pending,
            questions,
            known_answer: None,
            ready: None,
        }
    }

    /// With the roots that the server gets; by default none.
    pub(crate) fn with_roots(mut self, roots: Roots) -> Self {
        self.roots = roots;
        self
    }

    /// Whether the server may ask models; by default it may not.
    pub(crate) fn with_sampling(mut self, sampling: bool) -> Self {
        self.sampling = sampling;
        self
    }

    /// The library's first request, `server/discover` or `initialize`, was asked and answered already: it gets
    /// this answer, and the server is not asked again.
    pub(crate) fn answer_with(mut self, answer: ServerResult) -> Self {
        self.known_answer = Some(answer);
        self
    }

    /// Answers a request from what is known; whether it did.
    fn answer_known(&mut self, message: &ClientJsonRpcMessage) -> bool {
        let ClientJsonRpcMessage::Request(request) = message else { return false };
        let begins = matches!(
            (&request.request, &self.known_answer),
            (ClientRequest::DiscoverRequest(_), Some(ServerResult::DiscoverResult(_)))
                | (ClientRequest::InitializeRequest(_), Some(ServerResult::InitializeResult(_)))
        );
        let Some(answer) = self.known_answer.take_if(|_| begins) else { return false };
        self.ready = Some(ServerJsonRpcMessage::response(answer, request.id.clone()));
        true
    }

    fn note_sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                if self.pending.len() >= MAX_PENDING
                    && let Some(oldest) = self.pending.iter().min_by_key(|id| number(id)).cloned()
                {
                    self.pending.remove(&oldest);
                }
                self.pending.insert(request.id.clone());
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.pending.remove(id);
                }
            }
            ClientJsonRpcMessage::Response(response) => {
                self.questions.remove(&response.id);
            }
            ClientJsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.questions.remove(id);
                }
            }
        }
    }

    /// Takes the pending request of a response; whether there is one.
    fn take_pending(&mut self, id: &RequestId) -> bool {
        let was_pending = self.pending.remove(id)
            || match id {
                NumberOrString::String(text) => {
                    text.parse().is_ok_and(|id| self.pending.remove(&NumberOrString::Number(id)))
                }
                NumberOrString::Number(_) => false,
            };
        if !was_pending {
            tracing::debug!(%id, "a response without a pending request is dropped");
        }
        was_pending
    }

    /// The message that the library gets, if any.
    fn filter(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            ServerJsonRpcMessage::Response(response) => {
                self.take_pending(&response.id).then_some(ServerJsonRpcMessage::Response(response))
            }
            ServerJsonRpcMessage::Error(error) => {
                let passes = error.id.as_ref().is_none_or(|id| self.take_pending(id));
                passes.then_some(ServerJsonRpcMessage::Error(error))
            }
            ServerJsonRpcMessage::Request(request)
                if (matches!(request.request, ServerRequest::ElicitRequest(_))
                    || self.sampling
                        && matches!(request.request, ServerRequest::CreateMessageRequest(_)))
                    && self.questions.len() < MAX_QUESTIONS
                    && self.questions.insert(request.id.clone()) =>
            {
                Some(ServerJsonRpcMessage::Request(request))
            }
            ServerJsonRpcMessage::Request(request) => {
                self.reply(request.id, &request.request);
                None
            }
            // Also those of a stream: the library ends a stream that names a part of a resource, which servers may.
            ServerJsonRpcMessage::Notification(notification)
                if self.updates.resources.take(&notification.notification) =>
            {
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
            other => {
                self.updates.lists_changed.take(&other);
            }
        }
    }

    fn reply(&mut self, id: RequestId, request: &ServerRequest) {
        let roots = self.roots.answer().filter(|_| matches!(request, ServerRequest::ListRootsRequest(_)));
        let reply = match (request, roots) {
            (ServerRequest::PingRequest(_), _) => ClientJsonRpcMessage::response(ClientResult::empty(()), id),
            (_, Some(roots)) => {
                let result = ClientResult::CustomResult(CustomResult::new(roots));
                ClientJsonRpcMessage::response(result, id)
            }
            _ => {
                tracing::info!(
                    "the MCP server asks for what it does not get (sampling without a grant of models, too many questions, or roots without config.roots): refused"
                );
                let error = ErrorData::new(
                    ErrorCode::METHOD_NOT_FOUND,
                    format!(
                        "this client offers sampling and roots only where its operator says so, and at most {MAX_QUESTIONS} questions at once"
                    ),
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

impl<T: Transport<RoleClient>> Transport<RoleClient> for MessageFilter<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let send = if self.answer_known(&message) {
            None
        } else {
            self.note_sent(&message);
            Some(self.inner.send(message))
        };
        async move {
            match send {
                Some(send) => send.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        if let Some(ready) = self.ready.take() {
            return Some(ready);
        }
        loop {
            let message = self.inner.receive().await?;
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
