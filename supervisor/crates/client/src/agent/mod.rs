//! The agent by its socket, `agent.sock`.
//!
//! Who listens there is judged as with `host.sock`, and the next one is waited for as long.

mod turn;

use std::io;
use std::path::{Path, PathBuf};

use talon_proto::agent::AskRequest;
use talon_proto::agent::agent_client::AgentClient;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::transport::Channel;

use crate::client::{Client, MAX_ANSWER_BYTES};

pub use turn::{Heard, Turn, TurnError};

/// The name of the agent's socket, which lies beside the supervisor's.
pub const AGENT_SOCKET: &str = "agent.sock";

/// The agent, by its socket. Cheap to clone; clones share one connection, which is made again when it is gone.
#[derive(Debug, Clone)]
pub struct Agent {
    link: Client,
}

impl Agent {
    /// Where the agent listens whose supervisor listens there.
    #[must_use]
    pub fn beside(host_socket: &Path) -> PathBuf {
        host_socket.with_file_name(AGENT_SOCKET)
    }

    /// One over a connection that [`crate::dial`] made.
    ///
    /// # Errors
    /// When the other end hangs up at once.
    pub async fn over(first: UnixStream, path: PathBuf) -> Result<Self, tonic::transport::Error> {
        Ok(Self { link: Client::over(first, path).await? })
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`crate::dial`]; nobody is waited for.
    pub async fn connect(path: PathBuf) -> io::Result<Self> {
        Ok(Self { link: Client::connect(path).await? })
    }

    /// The generated client, which repeats nothing.
    #[must_use]
    pub fn grpc(&self) -> AgentClient<Channel> {
        AgentClient::new(self.link.channel()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.link.path()
    }

    /// Asks something that changes nothing, such as `ListSessions`, and again if the agent is started anew meanwhile.
    ///
    /// # Errors
    /// The agent's, or that of the last try.
    pub async fn ask<T, F>(&self, mut question: impl FnMut(AgentClient<Channel>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        self.link.repeated(|| question(self.grpc())).await
    }

    /// A turn, which begins when its first chunk is asked for.
    #[must_use]
    pub fn turn(&self, request: AskRequest) -> Turn {
        Turn::asked(self.clone(), request)
    }

    /// The turn that a session is in.
    #[must_use]
    pub fn attach(&self, session_id: String) -> Turn {
        Turn::of_session(self.clone(), session_id)
    }
}

#[cfg(test)]
mod tests;
