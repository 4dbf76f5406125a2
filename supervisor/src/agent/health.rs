//! How the agent is asked whether it still answers: one that hangs is missed by everybody who speaks to it.

use talon_plugin::Service;
use talon_proto::agent::GetStatusRequest;
use talon_proto::agent::agent_client::AgentClient;

use super::keeper::Keeper;
use crate::service::{self, HealthChecks};

/// Asks it again and again how it is, over a connection of the supervisor's own, for as long as it runs; kills it when it does not
/// say.
pub async fn watch(keeper: Keeper, service: Service, checks: HealthChecks) {
    let client = AgentClient::new(keeper.channel());
    let held = keeper.held.clone();
    let ask = move || {
        let (mut client, held) = (client.clone(), held.clone());
        async move {
            let status = client.get_status(GetStatusRequest {}).await?;
            held.kind().tells(status.get_ref());
            Ok(())
        }
    };
    service::watch(keeper.held, service, checks, ask).await;
}
