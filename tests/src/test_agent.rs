//! A client of `agent.sock`.

use std::path::Path;

use talon_proto::agent::GetLoopRequest;
use talon_proto::agent::agent_client::AgentClient;
use tonic::Status;
use tonic::transport::Channel;

use talon_harness::{Supervisor, dial};

/// A connection to `talon-test-agent`, which executes commands.
#[derive(Debug, Clone)]
pub struct TestAgent {
    /// The generated client.
    pub raw: AgentClient<Channel>,
}

impl TestAgent {
    /// Connects to a socket.
    ///
    /// # Errors
    /// When no server listens there.
    pub async fn connect(socket: &Path) -> Result<Self, tonic::transport::Error> {
        Ok(Self { raw: AgentClient::new(dial(socket).await?) })
    }

    /// Connects to the agent of a supervisor.
    ///
    /// # Panics
    /// When no server listens there.
    pub async fn of(supervisor: &Supervisor) -> Self {
        let connected = Self::connect(&supervisor.agent_socket()).await;
        connected.unwrap_or_else(|error| panic!("agent.sock: {error:?}\n{}", supervisor.log()))
    }

    /// The result of a command; see `talon-test-agent`.
    ///
    /// # Errors
    /// Its error, or that it does not answer.
    pub async fn try_run(&self, words: &str) -> Result<String, Status> {
        let request = GetLoopRequest { session_id: words.to_owned() };
        Ok(self.raw.clone().get_loop(request).await?.into_inner().goal)
    }

    /// The result of a command that must succeed.
    ///
    /// # Panics
    /// When it fails.
    pub async fn run(&self, words: &str) -> String {
        self.try_run(words).await.unwrap_or_else(|status| panic!("{words}: {status}"))
    }
}
