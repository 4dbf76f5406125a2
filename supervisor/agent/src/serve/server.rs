//! The gRPC server over the connections that the supervisor sends, with its limits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use talon_listen::{FRAME_BYTES, LogThrottle, PrefaceTimeout, WINDOW_BYTES};
use talon_proto::agent::agent_server::AgentServer;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport;
use tonic::transport::server::Connected;

use super::client::{Client, ClientError};
use super::limits::{MAX_ANSWER_BYTES, MAX_HEADER_BYTES, MAX_REQUEST_BYTES, OTHER_CONNECTIONS};
use super::request_limiter::RequestLimiter;
use super::service::Service;
use crate::agent::Agent;

static CROWDED: LogThrottle = LogThrottle::new();

/// The running server.
#[derive(Debug)]
pub(crate) struct Server {
    connections: mpsc::Sender<PrefaceTimeout<Connection>>,
    open: Arc<AtomicUsize>,
    /// The most that are open.
    most: usize,
    /// The most requests of a connection.
    streams: u32,
    task: JoinHandle<Result<(), transport::Error>>,
}

/// The client of a connection, and the connection's slot.
#[derive(Debug)]
struct Connection {
    client: Client,
    open: Arc<AtomicUsize>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connected for Connection {
    type ConnectInfo = Client;

    fn connect_info(&self) -> Client {
        self.client.clone()
    }
}

impl Server {
    /// Serves what is attached, until `ending`. Must be called within a tokio runtime.
    pub(crate) fn start(agent: &Arc<Agent>, ending: CancellationToken) -> Self {
        let limits = agent.setup().settings.agent.limits;
        let most =
            usize::try_from(limits.connections).unwrap_or(usize::MAX).saturating_add(OTHER_CONNECTIONS);
        // Each that waits to be accepted has its place already.
        let (connections, accepted) = mpsc::channel(most);
        let service = AgentServer::new(Service::new(Arc::clone(agent)))
            .max_decoding_message_size(MAX_REQUEST_BYTES)
            .max_encoding_message_size(MAX_ANSWER_BYTES);
        let serving = transport::Server::builder()
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .max_concurrent_streams(limits.requests_per_connection)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .serve_with_incoming_shutdown(
                RequestLimiter::new(service, limits),
                ReceiverStream::new(accepted).map(Ok::<_, io::Error>),
                ending.cancelled_owned(),
            );
        Self {
            connections,
            open: Arc::default(),
            most,
            streams: limits.requests_per_connection,
            task: tokio::spawn(serving),
        }
    }

    /// Serves one more connection.
    ///
    /// # Errors
    /// [`ClientError::TooMany`]; it is closed then.
    pub(crate) fn attach(&self, stream: UnixStream, client: Client) -> Result<(), ClientError> {
        tracing::debug!(client.uid, client.pid, sender = %client.sender, role = ?client.role, "a client connected");
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return self.check_capacity();
        }
        let delegates = client.delegates;
        let connection = Connection { client, open: Arc::clone(&self.open) };
        // One connection has the requests of all whom the gateway serves.
        let connection = match delegates {
            true => PrefaceTimeout::of_streams(stream, self.streams, connection),
            false => PrefaceTimeout::new(stream, connection),
        };
        match self.connections.try_send(connection) {
            Ok(()) => Ok(()),
            Err(_full) => self.check_capacity(),
        }
    }

    /// Logs at most one line a second.
    fn check_capacity(&self) -> Result<(), ClientError> {
        if CROWDED.permit().is_some() { Err(ClientError::TooMany) } else { Ok(()) }
    }

    /// Returns when all connections have ended.
    pub(crate) async fn wait_closed(self) {
        drop(self.connections);
        if let Ok(Err(error)) = self.task.await {
            tracing::warn!(%error, "the server of the agent's clients failed");
        }
    }
}
