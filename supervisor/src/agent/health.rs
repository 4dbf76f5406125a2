//! Health checks of the agent: if it hangs, all its clients are blocked.

use talon_plugin::Service;
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::agent::{GetSessionRequest, GetStatusRequest};

use super::supervisor::AgentSupervisor;
use crate::service::{self, HealthChecks};

/// Checks it in intervals while it runs, over a connection of the supervisor's, and kills it if it does not
/// answer.
pub async fn watch(keeper: AgentSupervisor, service: Service, checks: HealthChecks) {
    let client = AgentClient::new(keeper.channel());
    let held = keeper.handle.clone();
    let ask = move || {
        let (mut client, held) = (client.clone(), held.clone());
        async move {
            let status = client.get_status(GetStatusRequest {}).await?;
            held.service().set_report(status.get_ref());
            Ok(())
        }
    };
    // No session has an empty id: it refuses that at once, and accesses neither its database nor the
    // workspace, which may both be slow.
    let ping = {
        let client = AgentClient::new(keeper.channel());
        move || {
            let mut client = client.clone();
            async move { client.get_session(GetSessionRequest::default()).await.map(drop) }
        }
    };
    service::watch(keeper.handle, service, checks, ping, ask).await;
}
