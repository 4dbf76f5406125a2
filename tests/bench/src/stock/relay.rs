//! Two bare hops: a process in the middle that receives a call by tonic and forwards it by tonic. This is the
//! minimum cost of any process between a client and a plugin.

use std::path::Path;

use anyhow::Result;
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_proto::plugin::{ToolCallRequest, ToolResultResponse};
use talon_tests::dial;
use tonic::Status;
use tonic::transport::Channel;

use super::bare::CallHandler;

/// Forwards calls to another server.
pub(super) struct Relay(PluginServiceClient<Channel>);

impl Relay {
    pub(super) async fn to(socket: &Path) -> Result<Self> {
        Ok(Self(PluginServiceClient::new(dial(socket).await?)))
    }
}

impl CallHandler for Relay {
    async fn answer(&self, request: ToolCallRequest) -> Result<ToolResultResponse, Status> {
        self.0.clone().execute(request).await.map(tonic::Response::into_inner)
    }
}
