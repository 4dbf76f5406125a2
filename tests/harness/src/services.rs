//! The status of a supervisor's services: the state, the agent and the gateway.

use talon_proto::host::{AgentStatus, GatewayStatus, StateStatus};

use crate::client::Client;
use crate::supervisor::Supervisor;

impl Supervisor {
    /// The status of the state service.
    ///
    /// # Panics
    /// When the supervisor does not report it.
    pub async fn state_service(&self) -> StateStatus {
        self.client.status().await.state_service.expect("it is always told")
    }

    /// Waits until the status of the state service satisfies the predicate.
    ///
    /// # Panics
    /// When that does not come.
    pub async fn wait_state_service(&self, what: &str, wanted: impl Fn(&StateStatus) -> bool) -> StateStatus {
        let looked =
            async |client: &Client| client.status().await.state_service.as_ref().is_some_and(&wanted);
        self.client.wait_until(what, looked).await;
        self.state_service().await
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
        let looked = async |client: &Client| client.status().await.agent.as_ref().is_some_and(&wanted);
        self.client.wait_until(what, looked).await;
        self.agent_status().await
    }

    /// The status of its gateway.
    ///
    /// # Panics
    /// When the supervisor does not report it.
    pub async fn gateway_status(&self) -> GatewayStatus {
        self.client.status().await.gateway.expect("it is always told")
    }

    /// Waits until the status of its gateway satisfies the predicate.
    ///
    /// # Panics
    /// When that does not come.
    pub async fn wait_gateway(&self, what: &str, wanted: impl Fn(&GatewayStatus) -> bool) -> GatewayStatus {
        let looked = async |client: &Client| client.status().await.gateway.as_ref().is_some_and(&wanted);
        self.client.wait_until(what, looked).await;
        self.gateway_status().await
    }
}
