//! What may be called.

use talon_agent_settings::{ConfirmMode, covers};
use talon_proto::agent::{ListToolsRequest, ListToolsResponse, Tool};
use tonic::Status;

use super::client::Client;
use super::service::Service;
use crate::agent::tools_of;
use crate::driver::{AllowedTools, Caller};
use crate::tools::Offer;

impl Service {
    pub(super) async fn list_tools(
        &self,
        client: &Client,
        request: ListToolsRequest,
    ) -> Result<ListToolsResponse, Status> {
        let (setup, mut caller, mut within) = (self.agent.setup(), Caller::default(), Vec::new());
        caller.sender = client.sender.to_string();
        if !request.session_id.is_empty() {
            let session = self.session(client, &request.session_id).await?;
            within = tools_of(&session);
            caller.session = session.id.to_string();
            caller.sender = session.sender;
            caller.channel = session.channel;
        }
        let plugins = setup.environment.host.tools().await;
        let mut plugins =
            plugins.map_err(|error| Status::unavailable(talon_child::truncate(error.to_string())))?;
        for own in &setup.environment.builtin_tools {
            plugins.extend(own.capabilities(&caller).map(|said| (said.name.clone(), said)));
        }
        let actions =
            plugins.iter().flat_map(|(name, said)| said.actions.iter().map(move |one| (name.as_str(), one)));
        let offer = Offer::new(actions);
        let allowed = AllowedTools::new(&setup.settings.agent.allow, &caller.sender, &caller.channel);
        let may = |plugin: &str, action: &str| {
            let among = |list: &Vec<String>| list.iter().any(|pattern| covers(pattern, plugin, action));
            (within.is_empty() || among(&within)) && allowed.cover(plugin, action)
        };
        let tools = offer.tools().filter(|tool| may(&tool.plugin, &tool.action)).map(|tool| Tool {
            name: tool.spec.name.clone(),
            plugin: tool.plugin.clone(),
            action: tool.action.clone(),
            description: tool.spec.description.clone(),
            confirm: word(self.agent.approvals.confirm_mode(&tool.plugin, &tool.action, tool.read_only)),
            read_only: tool.read_only,
            parameters: tool.spec.parameters.to_string(),
            destructive: tool.destructive,
        });
        Ok(ListToolsResponse { tools: tools.collect() })
    }
}

fn word(ask: ConfirmMode) -> String {
    match ask {
        ConfirmMode::Always => "always",
        ConfirmMode::Destructive => "destructive",
        ConfirmMode::Never => "never",
    }
    .to_owned()
}
