//! MCP's stdio transport: that of the SDK, with a limit on open requests.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::arguments::{LineTap, SeenArguments};

/// The longest line to read. The arguments of one call are at most 1 MiB unless the supervisor's
/// configuration says otherwise; JSON escapes can multiply that by six. A longer line is dropped with a log
/// line.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;
/// Requests without a written answer. More than the concurrent calls, since lists may wait as well; the next
/// line is read only below this limit, so that a client that does not read its answers blocks only itself.
const MAX_OPEN: usize = 128;

/// The error for a request with the id of an open request: the answers would be indistinguishable.
const DUPLICATE_ID: &str = "a request with this id is in progress: use a unique id for each";

/// The ids of open requests.
#[derive(Debug, Default)]
struct OpenRequests {
    requests: Mutex<HashSet<RequestId>>,
    closed_one: Notify,
}

impl OpenRequests {
    fn with<T>(&self, change: impl FnOnce(&mut HashSet<RequestId>) -> T) -> T {
        change(&mut self.requests.lock())
    }

    fn close(&self, id: &RequestId) {
        if self.with(|requests| requests.remove(id)) {
            self.closed_one.notify_one();
        }
    }

    /// Resolves when another request may be opened. There is a single reader, so the capacity cannot be taken
    /// in between.
    async fn wait_for_capacity(&self) {
        while self.with(|requests| requests.len() >= MAX_OPEN) {
            self.closed_one.notified().await;
        }
    }
}

pub(crate) struct Stdio<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, LineTap<R>, W>,
    seen: SeenArguments,
    open: Arc<OpenRequests>,
    /// The pending error for a rejected request. Reading resumes after it is written. It is stored here
    /// because the future of `receive` may be dropped and created again.
    objection: Option<BoxFuture<'static, io::Result<()>>>,
    ended: CancellationToken,
}

impl<R, W> Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Cancels `ended` at the end of the input.
    pub(crate) fn new(input: R, output: W, ended: CancellationToken) -> Self {
        let seen = SeenArguments::default();
        let input = LineTap::new(input, MAX_LINE_BYTES, seen.clone());
        let inner = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE_BYTES);
        Self { inner, seen, open: Arc::default(), objection: None, ended }
    }
}

impl<R, W> Transport<RoleServer> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answers = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let open = Arc::clone(&self.open);
        let sent = self.inner.send(item);
        async move {
            let result = sent.await;
            if let Some(id) = answers {
                open.close(&id);
            }
            result
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(objection) = &mut self.objection {
                // If the client is gone, writing answers fails as well and is handled there.
                let _ = objection.await;
                self.objection = None;
            }
            self.open.wait_for_capacity().await;
            let mut next = self.inner.receive().await;
            match &mut next {
                Some(JsonRpcMessage::Request(request)) => {
                    if !self.open.with(|requests| requests.insert(request.id.clone())) {
                        let error = ErrorData::invalid_request(DUPLICATE_ID, None);
                        let objection = JsonRpcMessage::error(error, Some(request.id.clone()));
                        self.objection = Some(self.inner.send(objection).boxed());
                        continue;
                    }
                    if let ClientRequest::CallToolRequest(call) = &mut request.request
                        && let Some(raw) = self.seen.take(&request.id)
                    {
                        call.extensions.insert(raw);
                    }
                }
                // A cancelled request gets no answer, and its work stops at once.
                Some(JsonRpcMessage::Notification(notification)) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.open.close(id);
                    }
                }
                Some(_) => {}
                None => self.ended.cancel(),
            }
            return next;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;

    #[tokio::test]
    async fn an_id_that_is_under_way_is_not_taken_twice() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(server);
        let mut stdio = Stdio::new(input, output, CancellationToken::new());
        let (answers, mut requests) = tokio::io::split(client);
        for (id, method) in [(1, "ping"), (1, "ping"), (2, "ping")] {
            let line = format!("{{\"jsonrpc\": \"2.0\", \"id\": {id}, \"method\": \"{method}\"}}\n");
            requests.write_all(line.as_bytes()).await.unwrap();
        }
        for taken in [1, 2] {
            let Some(JsonRpcMessage::Request(request)) = stdio.receive().await else { panic!("a request") };
            assert_eq!(request.id, RequestId::Number(taken));
        }
        let mut said = String::new();
        BufReader::new(answers).read_line(&mut said).await.unwrap();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["id"], &said["error"]["message"]), (&1.into(), &DUPLICATE_ID.into()), "{said}");
        assert_eq!(stdio.open.with(|requests| requests.len()), 2, "the first one is under way still");
    }
}
