//! The server of the host service.

use std::io;
use std::os::unix::net;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use talon_listen::ConnectionLimiter;
use talon_proto::host::host_server::Host;
use talon_wire::frames::FrameLimits;
use tokio::net::UnixListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::accept::{Connection, LivenessProbe, connection_limiter, connections};
use super::connection::ConnectionService;
use super::limits::{CLOSE_TIMEOUT, RequestLimits};
use super::state_proxy::StateProxy;
use crate::config::HostLimits;
use crate::socket::PeerClassifier;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The socket cannot be used, mostly because of too many open files.
    #[error("host.sock cannot be served: {0}; see the open files limit (LimitNOFILE=)")]
    Listen(#[from] io::Error),
}

/// The running server.
pub struct Server {
    task: JoinHandle<()>,
    stop: CancellationToken,
    liveness: LivenessProbe,
    connections: Arc<ConnectionLimiter>,
}

impl Server {
    /// Starts to serve on a duplicate of the listener: clients that connect while there is no server wait in
    /// the listener's queue for the next one. Must be called within a tokio runtime. `max_argument_bytes` is
    /// the largest `guard.max_argument_bytes` of all plugins; a larger request (plus some slack) fails with
    /// OUT_OF_RANGE before it is read completely. `frames` is the budget of each connection; `limits` how much there may be at once.
    ///
    /// # Errors
    /// [`ServeError::Listen`]
    pub fn start(
        listener: &net::UnixListener,
        recognise: PeerClassifier,
        service: impl Host,
        operators: StateProxy,
        max_argument_bytes: usize,
        frames: FrameLimits,
        limits: &HostLimits,
    ) -> Result<Self, ServeError> {
        let listener = UnixListener::from_std(listener.try_clone()?)?;
        let stop = CancellationToken::new();
        let (pulse, heart) = LivenessProbe::new();
        let serving =
            ConnectionService::new(service, operators, max_argument_bytes, RequestLimits::of_socket(limits));
        let places = connection_limiter(limits);
        let incoming = connections(listener, recognise, Arc::clone(&places), heart, frames);
        let serving = serve(incoming, serving, stop.clone());
        Ok(Self { task: tokio::spawn(serving), stop, liveness: pulse, connections: places })
    }

    /// A probe of the accept loop.
    #[must_use]
    pub fn liveness(&self) -> LivenessProbe {
        self.liveness.clone()
    }

    /// The limiter that counts its connections.
    #[must_use]
    pub fn connections(&self) -> Arc<ConnectionLimiter> {
        Arc::clone(&self.connections)
    }

    /// Resolves once the server has ended. Unless it was stopped, that can only be a panic, which is
    /// propagated.
    pub async fn ended(&mut self) {
        if let Err(error) = (&mut self.task).await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }

    /// Stops accepting connections and ends the existing ones. A client that does not close its connection is
    /// cut off.
    pub async fn stop(self) {
        self.close(CLOSE_TIMEOUT).await;
    }

    /// Stops accepting connections, and asks every client to send no further requests (GOAWAY). Requests in
    /// flight may finish within this time; a connection without any is cut off within a second.
    /// Returns true if all requests finished.
    pub async fn close(mut self, within: Duration) -> bool {
        self.stop.cancel();
        let closed = tokio::time::timeout(within, &mut self.task).await.is_ok();
        if !closed {
            self.task.abort();
        }
        closed
    }
}

/// Serves all connections until `stop`, then those that exist until their requests are answered.
async fn serve<H: Host>(
    incoming: impl Stream<Item = Connection>,
    serving: Arc<ConnectionService<H>>,
    stop: CancellationToken,
) {
    let mut open = JoinSet::new();
    {
        let mut incoming = pin!(incoming);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(connection) = incoming.next() => {
                    let served = serving.clone().connection(connection, stop.clone());
                    open.spawn(async move {
                        if let Err(error) = served.await {
                            // Mostly a client that went away, or one that speaks another protocol.
                            tracing::debug!(%error, "a connection to host.sock broke");
                        }
                    });
                }
                Some(_) = open.join_next() => {}
            }
        }
    }
    while open.join_next().await.is_some() {}
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
