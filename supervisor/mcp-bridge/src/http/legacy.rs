//! The HTTP+SSE transport of 2024-11-05: one event stream from the server, whose first event names where
//! messages are posted to.
//!
//! When the stream ends, the connection is over, and the bridge ends with it: these servers keep a session for
//! one stream.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method};
use http_body_util::BodyExt;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE};
use sse_stream::{Error as SseError, Sse};
use talon_bridge::text::cut;
use tokio::sync::mpsc;

use super::address::Address;
use super::client::{HttpClient, Parts, error_of, is};
use super::error::HttpError;
use super::events::events;
use crate::server::lines::MAX_MESSAGE_BYTES;
use crate::server::stdio::message;

/// Messages that were read but not taken yet, as with a process: each may be large.
const INBOX_CAPACITY: usize = 4;
/// Events before the one that names the endpoint, which should be the first: comments and pings of proxies.
const MAX_EVENTS_BEFORE: usize = 8;
/// How much of an endpoint is shown.
const MAX_SHOWN_BYTES: usize = 200;

/// Why this transport cannot be used, or a message not be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LegacyError {
    /// The address opens no such stream.
    #[error("it opens no event stream that names an endpoint: {0}")]
    NoEndpoint(String),
    /// The endpoint is another server's: messages, and the headers with them, do not go there.
    #[error("it wants messages to be sent to {0:?}, which is not on its own host and port: refused")]
    OtherOrigin(String),
    /// A message was refused.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A bug of ours.
    #[error("a message cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// An open stream, and where messages go.
pub(crate) struct LegacySse {
    client: HttpClient,
    endpoint: Arc<str>,
    headers: HashMap<HeaderName, HeaderValue>,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
}

impl LegacySse {
    /// Opens the stream at an address and waits for its endpoint.
    pub(super) async fn open(
        client: HttpClient,
        address: &Address,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Self, LegacyError> {
        let parts = Parts { uri: address.as_str().into(), session: None, headers: headers.clone() };
        let accept = [(ACCEPT, EVENT_STREAM_MIME_TYPE)];
        let response = client
            .send(Method::GET, parts, &accept, Vec::new())
            .await
            .map_err(|error| LegacyError::NoEndpoint(error.to_string()))?;
        if !response.status().is_success() || !is(&response, EVENT_STREAM_MIME_TYPE) {
            return Err(LegacyError::NoEndpoint(format!("HTTP {}", response.status())));
        }
        let mut stream = events(response.into_body().into_data_stream(), MAX_MESSAGE_BYTES);
        let endpoint = endpoint(&mut stream, address).await?;
        let (sender, inbox) = mpsc::channel(INBOX_CAPACITY);
        // Ends with the stream, or when the transport is dropped.
        tokio::spawn(read(stream, sender));
        Ok(Self { client, endpoint: endpoint.as_str().into(), headers, inbox })
    }
}

async fn endpoint(
    stream: &mut BoxStream<'static, Result<Sse, SseError>>,
    address: &Address,
) -> Result<Address, LegacyError> {
    for _ in 0..MAX_EVENTS_BEFORE {
        match stream.next().await {
            Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                let named = event.data.unwrap_or_default();
                let named = named.trim();
                return address
                    .same_origin(named)
                    .ok_or_else(|| LegacyError::OtherOrigin(cut(named, MAX_SHOWN_BYTES)));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(LegacyError::NoEndpoint(error.to_string())),
            None => break,
        }
    }
    Err(LegacyError::NoEndpoint("its first events name none".to_owned()))
}

async fn read(
    mut stream: BoxStream<'static, Result<Sse, SseError>>,
    inbox: mpsc::Sender<ServerJsonRpcMessage>,
) {
    loop {
        let event = tokio::select! {
            event = stream.next() => event,
            () = inbox.closed() => return,
        };
        match event {
            Some(Ok(event)) => {
                let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
                let Some(message) =
                    event.data.filter(|_| is_message).and_then(|data| message(data.as_bytes()))
                else {
                    continue;
                };
                if inbox.send(message).await.is_err() {
                    return;
                }
            }
            Some(Err(error)) => {
                tracing::warn!("the event stream of the MCP server broke: {error}");
                return;
            }
            None => return,
        }
    }
}

impl Transport<RoleClient> for LegacySse {
    type Error = LegacyError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), LegacyError>> + Send + 'static {
        let client = self.client.clone();
        let parts = Parts { uri: Arc::clone(&self.endpoint), session: None, headers: self.headers.clone() };
        async move {
            let sent = serde_json::to_vec(&message)?;
            let response = client.send(Method::POST, parts, &[(CONTENT_TYPE, JSON_MIME_TYPE)], sent).await?;
            if response.status().is_success() {
                return Ok(());
            }
            let (_, error) = error_of(response).await;
            Err(error.into())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), LegacyError> {
        self.inbox.close();
        Ok(())
    }
}
