//! The host service for one connection that nobody made on `host.sock`: the supervisor made it itself, and says who is at its
//! other end.

use std::io;
use std::net::Shutdown;
use std::os::unix::net;
use std::time::Duration;

use talon_listen::Prompt;
use talon_proto::host::host_server::Host;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connection::Serving;
use super::incoming::Client;
use super::operators::Operators;
use super::peer::Peer;

/// One served connection. It is cut when this is dropped.
pub struct Alone {
    /// A duplicate, by which it is cut whoever else holds it.
    stream: net::UnixStream,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Alone {
    /// Serves `stream` until its other end is closed. Its requests come from `peer`, whoever has that end. They have the limits
    /// that those of one connection to `host.sock` have, with requests of their own to count. Must be called within a tokio
    /// runtime.
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
        let connection = Prompt::new(stream, Client::new(peer, ()));
        // Who may operate came by `host.sock`.
        let serving = Serving::new(service, Operators::new(None), max_argument_bytes);
        let served = serving.connection(connection, stop.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::warn!(%error, "a connection of the supervisor's own making ended");
            }
        });
        Ok(Self { stream: held, stop, task })
    }

    /// Asks the other end to make no further request (GOAWAY). Those under way may finish within this time; then it is cut.
    pub async fn close(mut self, within: Duration) {
        self.stop.cancel();
        // What is still there is cut by the drop.
        let _ = timeout(within, &mut self.task).await;
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.stop.cancel();
        // An error says that it is cut already.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.task.abort();
    }
}
