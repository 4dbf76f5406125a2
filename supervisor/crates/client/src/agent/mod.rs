//! The agent, through its socket `agent.sock`.
//!
//! Trust in its listener, and waiting for a restart, work as with `host.sock`.

mod grpc;
mod turn;

use std::io;
use std::path::{Path, PathBuf};

use talon_proto::agent::AskRequest;
use talon_proto::agent::agent_client::AgentClient;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::transport::Channel;

use crate::client::Client;

pub use turn::{Turn, TurnError, TurnEvent};

/// The name of the agent's socket, in the same directory as the supervisor's.
pub const AGENT_SOCKET: &str = "agent.sock";

/// A client of the agent. Cheap to clone; clones share one connection, which is made again when it ends.
#[derive(Debug, Clone)]
pub struct Agent {
    client: Client,
}

impl Agent {
    /// The agent's socket for the supervisor with this socket.
    #[must_use]
    pub fn socket_beside(host_socket: &Path) -> PathBuf {
        host_socket.with_file_name(AGENT_SOCKET)
    }

    /// A client on a connection from [`crate::dial`].
    ///
    /// # Errors
    /// When the other end closes it at once.
    pub async fn from_stream(first: UnixStream, path: PathBuf) -> Result<Self, tonic::transport::Error> {
        Ok(Self { client: Client::from_stream(first, path).await? })
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`crate::dial`], without waiting.
    pub async fn connect(path: PathBuf) -> io::Result<Self> {
        Ok(Self { client: Client::connect(path).await? })
    }

    /// The generated client, without retries.
    #[must_use]
    pub fn grpc(&self) -> AgentClient<Channel> {
        grpc::agent_client(&self.client)
    }

    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.client.path()
    }

    /// Sends a request without side effects, such as `ListSessions`, and repeats it if the agent restarts
    /// meanwhile.
    ///
    /// # Errors
    /// The agent's, or that of the last attempt.
    pub async fn ask<T, F>(&self, mut question: impl FnMut(AgentClient<Channel>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        self.client.repeated(|| question(self.grpc())).await
    }

    /// A turn, which starts when its first chunk is requested.
    #[must_use]
    pub fn turn(&self, request: AskRequest) -> Turn {
        Turn::for_request(self.client.clone(), request)
    }

    /// The running turn of a session.
    #[must_use]
    pub fn attach(&self, session_id: String) -> Turn {
        Turn::of_session(self.client.clone(), session_id)
    }
}

#[cfg(test)]
mod tests;
