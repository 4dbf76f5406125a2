//! One connection on which the host API is served to the agent, as its owner sees it.

use std::net::Shutdown;
use std::os::unix::net;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// One served connection. Dropping it cuts the connection.
pub struct AgentConnection {
    /// A duplicate, used to cut the connection even if other processes hold descriptors of it.
    stream: net::UnixStream,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl AgentConnection {
    /// The connection that `task` serves until `stop`. `stream` is a duplicate of its socket.
    pub(crate) fn new(stream: net::UnixStream, stop: CancellationToken, task: JoinHandle<()>) -> Self {
        Self { stream, stop, task }
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
