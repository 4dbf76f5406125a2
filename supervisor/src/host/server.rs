//! The gRPC server around the host service, with its limits.

use std::time::Duration;

use talon_proto::host::host_server::{Host, HostServer};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tonic::transport;

use super::gate::Gate;
use super::incoming::{Recognise, connections};
use super::operators::{Operators, Routes};
use super::{FRAME_BYTES, MAX_STREAMS_PER_CONNECTION, REQUEST_SLACK_BYTES, WINDOW_BYTES};

/// Headers of one request; ours have a few hundred bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// How long connections may take to end once everything they asked for is answered.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the server ended by itself.
#[derive(Debug, thiserror::Error)]
#[error("host.sock failed: {0}")]
pub struct ServeError(#[from] transport::Error);

/// The running server.
pub struct Server {
    task: tokio::task::JoinHandle<Result<(), transport::Error>>,
    stop: CancellationToken,
}

impl Server {
    /// Begins to serve. `max_argument_bytes` is the largest `guard.max_argument_bytes` there is; a request beyond it
    /// and some slack fails before it is read whole, with OUT_OF_RANGE.
    #[must_use]
    pub fn start(
        listener: UnixListener,
        recognise: Recognise,
        service: impl Host,
        operators: Operators,
        max_argument_bytes: usize,
    ) -> Self {
        let stop = CancellationToken::new();
        let service = HostServer::new(service)
            .max_decoding_message_size(max_argument_bytes.saturating_add(REQUEST_SLACK_BYTES));
        let serving = transport::Server::builder()
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            // Two services need no router, and a router would bring a web framework along.
            .serve_with_incoming_shutdown(
                Gate::new(Routes { host: service, operators }),
                connections(listener, recognise),
                stop.clone().cancelled_owned(),
            );
        Self { task: tokio::spawn(serving), stop }
    }

    /// Resolves if the server ends without having been asked to.
    ///
    /// # Errors
    /// [`ServeError`] with its reason.
    pub async fn ended(&mut self) -> Result<(), ServeError> {
        match (&mut self.task).await {
            Ok(result) => Ok(result?),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Accepts no more connections and ends those there are. A client that holds on to its own is cut off.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(CLOSE_TIMEOUT, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
