//! Two bare hops: a process in the middle that takes a call by tonic and passes it on by tonic. What stands between a client
//! and a plugin and does nothing else costs this much.

use std::path::Path;

use anyhow::Result;
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_proto::plugin::plugin_service_server::{PluginService, PluginServiceServer};
use talon_proto::plugin::{
    HostMessage, PluginCapabilities, PluginInitRequest, PluginMessage, ToolCallRequest, ToolResultResponse,
};
use talon_tests::dial;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

use super::bare::unasked;

pub(super) async fn serve(socket: &Path, to: &Path) -> Result<()> {
    let onward = PluginServiceClient::new(dial(to).await?);
    let incoming = UnixListenerStream::new(super::listen(socket)?);
    // Without the router, which needs a web framework and more time.
    Server::builder().serve_with_incoming(PluginServiceServer::new(Onward(onward)), incoming).await?;
    Ok(())
}

struct Onward(PluginServiceClient<Channel>);

#[tonic::async_trait]
impl PluginService for Onward {
    async fn execute(
        &self,
        request: Request<ToolCallRequest>,
    ) -> Result<Response<ToolResultResponse>, Status> {
        let answer = self.0.clone().execute(request.into_inner()).await?;
        Ok(Response::new(answer.into_inner()))
    }

    async fn init(&self, _: Request<PluginInitRequest>) -> Result<Response<()>, Status> {
        Err(unasked())
    }

    async fn capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        Err(unasked())
    }

    async fn refresh_capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        Err(unasked())
    }

    type ExecuteBidiStream = tokio_stream::Empty<Result<PluginMessage, Status>>;

    async fn execute_bidi(
        &self,
        _: Request<Streaming<HostMessage>>,
    ) -> Result<Response<Self::ExecuteBidiStream>, Status> {
        Err(unasked())
    }
}
