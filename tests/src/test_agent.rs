//! A client of `agent.sock`, and the status of the agent.

use std::path::Path;

use talon_proto::agent::GetLoopRequest;
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::host::AgentStatus;
use tonic::Status;
use tonic::transport::Channel;

use crate::client::dial;
use crate::supervisor::Supervisor;

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

impl Supervisor {
    /// A connection to its agent.
    ///
    /// # Panics
    /// When no server listens there.
    pub async fn agent(&self) -> TestAgent {
        let connected = TestAgent::connect(&self.agent_socket()).await;
        connected.unwrap_or_else(|error| panic!("agent.sock: {error:?}\n{}", self.log()))
    }

    /// The status of its agent.
    ///
    /// # Panics
    /// When the supervisor does not report it.
    pub async fn agent_status(&self) -> AgentStatus {
        self.client.status().await.agent.expect("it is always told")
    }

    /// Waits until the status of its agent satisfies the predicate.
    ///
    /// # Panics
    /// When that does not come.
    pub async fn wait_agent(&self, what: &str, wanted: impl Fn(&AgentStatus) -> bool) -> AgentStatus {
        let looked = async |client: &crate::Client| client.status().await.agent.as_ref().is_some_and(&wanted);
        self.client.wait_until(what, looked).await;
        self.agent_status().await
    }
}
