//! The gRPC server around the host service, with its limits.

use std::io;
use std::os::unix::net;
use std::time::Duration;

use talon_proto::host::host_server::{Host, HostServer};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tonic::transport;

use super::gate::Gate;
use super::incoming::{Pulse, Recognise, connections};
use super::operators::{Operators, Routes};
use super::{FRAME_BYTES, MAX_STREAMS_PER_CONNECTION, REQUEST_SLACK_BYTES, WINDOW_BYTES};

/// Headers of one request; ours have a few hundred bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// How long connections may take to end once everything they asked for is answered.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the server ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The socket cannot be used; too many open files, mostly.
    #[error("host.sock cannot be served: {0}; see the open files limit (LimitNOFILE=)")]
    Listen(#[from] io::Error),
    /// It ended.
    #[error("host.sock failed: {0}")]
    Failed(#[from] transport::Error),
}

/// The running server.
pub struct Server {
    task: tokio::task::JoinHandle<Result<(), transport::Error>>,
    stop: CancellationToken,
    pulse: Pulse,
}

impl Server {
    /// Begins to serve, on a duplicate of the listener: who connects while there is no server waits in its queue for the
    /// next. Must be called within a tokio runtime. `max_argument_bytes` is the largest `guard.max_argument_bytes` there is; a request beyond it
    /// and some slack fails before it is read whole, with OUT_OF_RANGE.
    ///
    /// # Errors
    /// [`ServeError::Listen`]
    pub fn start(
        listener: &net::UnixListener,
        recognise: Recognise,
        service: impl Host,
        operators: Operators,
        max_argument_bytes: usize,
    ) -> Result<Self, ServeError> {
        let listener = UnixListener::from_std(listener.try_clone()?)?;
        let stop = CancellationToken::new();
        let (pulse, heart) = Pulse::new();
        let serving = limited().serve_with_incoming_shutdown(
            gated(service, operators, max_argument_bytes),
            connections(listener, recognise, heart),
            stop.clone().cancelled_owned(),
        );
        Ok(Self { task: tokio::spawn(serving), stop, pulse })
    }

    /// Whether it accepts connections.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
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
    pub async fn stop(self) {
        self.close(CLOSE_TIMEOUT).await;
    }

    /// Accepts no more connections, and tells every client to make no further request on its own (GOAWAY); those that are
    /// under way may finish within this time. True if all did.
    pub async fn close(mut self, within: Duration) -> bool {
        self.stop.cancel();
        let closed = tokio::time::timeout(within, &mut self.task).await.is_ok();
        if !closed {
            self.task.abort();
        }
        closed
    }
}

/// A server with what it may be sent bounded.
pub(super) fn limited() -> transport::Server {
    transport::Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
}

/// The host service behind its gate, and operators' requests beside it. Two services need no router, and a router would bring a
/// web framework along.
pub(super) fn gated<H: Host>(
    service: H,
    operators: Operators,
    max_argument_bytes: usize,
) -> Gate<Routes<HostServer<H>>> {
    let host = HostServer::new(service)
        .max_decoding_message_size(max_argument_bytes.saturating_add(REQUEST_SLACK_BYTES));
    Gate::new(Routes { host, operators })
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
