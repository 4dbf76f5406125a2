//! `talon.model.v1.Model` for one plugin.

use std::sync::Arc;

use talon_proto::model::model_server::Model;
use talon_proto::model::{CompleteRequest, CompleteResponse, GrantedModel, ListRequest, ListResponse};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::complete::complete;
use super::grant::Grant;
use super::plugin::PluginModels;
use crate::agent::Agent;

/// Serves one plugin.
pub(super) struct Service {
    agent: Arc<Agent>,
    plugin: Arc<PluginModels>,
    /// Cancelled when the plugin's process, or the agent, ends.
    closed: CancellationToken,
}

impl Service {
    pub(super) fn new(agent: Arc<Agent>, plugin: Arc<PluginModels>, closed: CancellationToken) -> Self {
        Self { agent, plugin, closed }
    }
}

#[tonic::async_trait]
impl Model for Service {
    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let limits = self.plugin.limits();
        let Grant { aliases, max_calls, max_tokens, timeout, own_budget, .. } = &limits.grant;
        Ok(Response::new(ListResponse {
            models: aliases.iter().map(|alias| GrantedModel { alias: alias.clone() }).collect(),
            max_tokens: *max_tokens,
            max_calls: *max_calls,
            timeout_ms: talon_agent_settings::milliseconds(*timeout),
            own_budget: own_budget.is_some(),
        }))
    }

    async fn complete(
        &self,
        request: Request<CompleteRequest>,
    ) -> Result<Response<CompleteResponse>, Status> {
        Ok(Response::new(complete(&self.agent, &self.plugin, request.into_inner(), &self.closed).await?))
    }
}
