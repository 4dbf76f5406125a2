//! Unmodified tonic: the same messages over the same kind of socket, without guard, supervisor or tuning.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_proto::plugin::plugin_service_server::{PluginService, PluginServiceServer};
use talon_proto::plugin::{
    HostMessage, PluginCapabilities, PluginInitRequest, PluginMessage, ToolCallRequest, ToolResultResponse,
};
use talon_tests::dial;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

use crate::load::Caller;

/// Serves a handler on one socket.
pub(super) async fn serve(socket: &Path, answers: impl CallHandler) -> Result<()> {
    let incoming = UnixListenerStream::new(super::listen::listen(socket)?);
    // Without the router, which needs a web framework and takes more time.
    Server::builder().serve_with_incoming(PluginServiceServer::new(OnlyExecute(answers)), incoming).await?;
    Ok(())
}

/// How a bare server answers a call.
pub(super) trait CallHandler: Send + Sync + 'static {
    fn answer(
        &self,
        request: ToolCallRequest,
    ) -> impl Future<Output = Result<ToolResultResponse, Status>> + Send;
}

/// Answers with as much text as the argument `bytes` asks for. The text is cached, as in a plugin with
/// prepared answers.
#[derive(Default)]
pub(super) struct TextHandler {
    text: Mutex<Arc<str>>,
}

impl CallHandler for TextHandler {
    async fn answer(&self, request: ToolCallRequest) -> Result<ToolResultResponse, Status> {
        let wanted = request.args.get("bytes").and_then(|bytes| bytes.parse().ok());
        let wanted = wanted.ok_or_else(|| Status::invalid_argument("no bytes"))?;
        let content = {
            let mut text = self.text.lock();
            if text.len() != wanted {
                *text = crate::content::text(wanted).into();
            }
            text.to_string()
        };
        Ok(ToolResultResponse { call_id: request.id, content, ..Default::default() })
    }
}

/// A plugin's service that only implements calls.
struct OnlyExecute<A>(A);

#[tonic::async_trait]
impl<A: CallHandler> PluginService for OnlyExecute<A> {
    async fn execute(
        &self,
        request: Request<ToolCallRequest>,
    ) -> Result<Response<ToolResultResponse>, Status> {
        self.0.answer(request.into_inner()).await.map(Response::new)
    }

    async fn init(&self, _: Request<PluginInitRequest>) -> Result<Response<()>, Status> {
        Err(not_implemented())
    }

    async fn capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        Err(not_implemented())
    }

    async fn refresh_capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        Err(not_implemented())
    }

    type ExecuteBidiStream = tokio_stream::Empty<Result<PluginMessage, Status>>;

    async fn execute_bidi(
        &self,
        _: Request<Streaming<HostMessage>>,
    ) -> Result<Response<Self::ExecuteBidiStream>, Status> {
        Err(not_implemented())
    }
}

fn not_implemented() -> Status {
    Status::unimplemented("it is called, and nothing else")
}

/// Calls on one connection.
#[derive(Clone)]
pub(super) struct BareCaller(PluginServiceClient<Channel>);

impl BareCaller {
    pub(super) fn of(client: PluginServiceClient<Channel>) -> Self {
        Self(client)
    }

    pub(super) async fn to(socket: &Path) -> Result<Self> {
        Ok(Self(PluginServiceClient::new(dial(socket).await?)))
    }
}

impl Caller for BareCaller {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let request = ToolCallRequest {
            id: crate::guarded::CALL_ID.to_owned(),
            plugin: crate::guarded::PLUGIN.to_owned(),
            action: crate::guarded::ACTION.to_owned(),
            args: [("bytes".to_owned(), content_bytes.to_string())].into(),
            ..ToolCallRequest::default()
        };
        let answer = self.0.execute(request).await?.into_inner();
        ensure!(
            answer.content.len() == content_bytes,
            "{} bytes came: {}",
            answer.content.len(),
            answer.error
        );
        Ok(())
    }
}
