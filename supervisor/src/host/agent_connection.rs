//! Serves the host API on one connection that did not come through `host.sock`: the supervisor created it and
//! states who the peer is.

use std::io;
use std::net::Shutdown;
use std::os::unix::net;
use std::time::Duration;

use talon_listen::PrefaceTimeout;
use talon_proto::host::host_server::Host;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::accept::ConnectedClient;
use super::connection::ConnectionService;
use super::peer::Peer;
use super::state_proxy::StateProxy;

/// One served connection. Dropping it cuts the connection.
pub struct AgentConnection {
    /// A duplicate, used to cut the connection even if other processes hold descriptors of it.
    stream: net::UnixStream,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl AgentConnection {
    /// Serves `stream` until its other end is closed. All requests count as requests of `peer`, whichever
    /// process holds the other end. The limits of one connection to `host.sock` apply, with separate
    /// counters. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn serve(
        stream: net::UnixStream,
        peer: Peer,
        service: impl Host,
        max_argument_bytes: usize,
    ) -> io::Result<Self> {
        let held = stream.try_clone()?;
        stream.set_nonblocking(true)?;
        let stream = UnixStream::from_std(stream)?;
        let stop = CancellationToken::new();
        let connection = PrefaceTimeout::new(stream, ConnectedClient::new(peer, ()));
        // Operators' requests are accepted on `host.sock` only.
        let serving = ConnectionService::new(service, StateProxy::new(None), max_argument_bytes);
        let served = serving.connection(connection, stop.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::warn!(%error, "a connection of the supervisor's own making ended");
            }
        });
        Ok(Self { stream: held, stop, task })
    }

    /// Asks the client to send no further requests (GOAWAY). Those in flight may finish within this time;
    /// then the connection is cut.
    pub async fn close(mut self, within: Duration) {
        self.stop.cancel();
        // Drop cuts the connection if it is still open.
        let _ = timeout(within, &mut self.task).await;
    }
}

impl Drop for AgentConnection {
    fn drop(&mut self) {
        self.stop.cancel();
        // An error means that it is closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.task.abort();
    }
}
