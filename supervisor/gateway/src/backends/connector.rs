//! Where connections to host and agent come from.

use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use talon_listen::ShortPath;
use tokio::net::UnixStream;

/// What stands behind the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The supervisor: `talon.host.v1`.
    Host,
    /// The agent: `talon.agent.v1`.
    Agent,
}

/// Gives connections to host and agent.
#[async_trait]
pub trait ConnectBackend: Send + Sync + 'static {
    /// A connection. Called when there is none, or the last one broke.
    ///
    /// # Errors
    /// Why there is none; the request that needs it fails as unavailable.
    async fn connect(&self, backend: Backend) -> io::Result<UnixStream>;
}

/// Connects to `host.sock` and `agent.sock` by their paths, for tests: there every caller is the process's own user.
#[derive(Debug, Clone)]
pub struct SocketPaths {
    /// `host.sock`
    pub host: PathBuf,
    /// `agent.sock`
    pub agent: PathBuf,
}

#[async_trait]
impl ConnectBackend for SocketPaths {
    async fn connect(&self, backend: Backend) -> io::Result<UnixStream> {
        let path = match backend {
            Backend::Host => &self.host,
            Backend::Agent => &self.agent,
        };
        let short = ShortPath::of_file(path)?;
        UnixStream::connect(short.as_path()).await
    }
}
