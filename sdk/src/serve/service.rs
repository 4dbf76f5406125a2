//! `opentalon.plugin.v1.PluginService` over the plugin's tools.

use std::sync::Arc;

use parking_lot::RwLock;
use talon_proto::plugin::plugin_service_server::PluginService;
use talon_proto::plugin::{
    HostMessage, PluginCapabilities, PluginInitRequest, PluginMessage, ToolCallRequest, ToolResultResponse,
};
use tokio::time::Instant;
use tonic::codegen::http::HeaderMap;
use tonic::{Request, Response, Status, Streaming};

use crate::Tool;
use crate::context::TraceHeaders;
use crate::dispatch;
use crate::model::ModelSource;
use crate::notices::PendingNotices;
use crate::plugin::{Defects, Plugin, PluginMetadata, Refresh, check_tools};
use crate::settings::{Init, Settings};
use crate::state::{SOCKET_ENV, StateSource};
use crate::text::shorten;

/// The longest status text: gRPC carries it in a header.
const MAX_STATUS_BYTES: usize = 1024;

/// A plugin as its gRPC service sees it.
pub(super) struct ServedPlugin {
    name: String,
    about: PluginMetadata,
    init: Init,
    refresh: Option<Arc<Refresh>>,
    state: StateSource,
    model: ModelSource,
    board: Arc<PendingNotices>,
    /// Replaced as a whole, so that a call in flight keeps what it started with.
    tools: RwLock<Arc<[Tool]>>,
    settings: RwLock<Arc<Settings>>,
}

impl ServedPlugin {
    pub(super) fn new(plugin: Plugin) -> Self {
        Self {
            name: plugin.name,
            about: plugin.metadata,
            init: plugin.init,
            refresh: plugin.refresh,
            state: StateSource::from_env(
                std::env::var_os(SOCKET_ENV).filter(|v| !v.is_empty()).map(Into::into),
            ),
            model: ModelSource::from_env(),
            board: plugin.notifier.board,
            tools: RwLock::new(plugin.tools.into()),
            settings: RwLock::default(),
        }
    }
}

impl ServedPlugin {
    /// Runs one call.
    ///
    /// # Errors
    /// As for [`dispatch::execute`].
    pub(super) async fn run(
        &self,
        request: ToolCallRequest,
        headers: &HeaderMap,
        deadline: Option<Instant>,
    ) -> Result<ToolResultResponse, Status> {
        let (tools, settings) = (current(&self.tools), current(&self.settings));
        let trace = trace_headers(headers);
        let host = dispatch::CallEnvironment {
            settings,
            state: self.state.clone(),
            model: self.model.clone(),
            board: self.board.clone(),
            trace,
        };
        dispatch::execute(&tools, request, deadline, host).await
    }
}

fn current<T: ?Sized>(slot: &RwLock<Arc<T>>) -> Arc<T> {
    Arc::clone(&slot.read())
}

fn replace<T: ?Sized>(slot: &RwLock<Arc<T>>, value: Arc<T>) {
    *slot.write() = value;
}

/// The trace headers of a call; not parsed, because only the tool uses them.
fn trace_headers(headers: &HeaderMap) -> TraceHeaders {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    TraceHeaders { parent: header("traceparent"), state: header("tracestate") }
}

#[tonic::async_trait]
impl PluginService for ServedPlugin {
    async fn init(&self, request: Request<PluginInitRequest>) -> Result<Response<()>, Status> {
        match self.init.run(&request.into_inner().config_json).await {
            Ok(settings) => {
                replace(&self.settings, Arc::new(settings));
                Ok(Response::new(()))
            }
            Err(refused) => {
                tracing::error!("{refused}");
                Err(Status::invalid_argument(refused.to_string()))
            }
        }
    }

    async fn execute(
        &self,
        request: Request<ToolCallRequest>,
    ) -> Result<Response<ToolResultResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let headers = metadata.into_headers();
        let deadline = talon_wire::deadline_of(&headers);
        Ok(Response::new(self.run(request, &headers, deadline).await?))
    }

    async fn capabilities(&self, request: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        if self.refresh.is_some() && current(&self.tools).is_empty() {
            return self.refresh_capabilities(request).await;
        }
        Ok(Response::new(self.about.capabilities(&self.name, &current(&self.tools))))
    }

    async fn refresh_capabilities(&self, _: Request<()>) -> Result<Response<PluginCapabilities>, Status> {
        let Some(refresh) = &self.refresh else {
            return Err(Status::unimplemented("this plugin's capabilities do not change"));
        };
        let tools = refresh().await.map_err(|error| {
            tracing::error!(error = error.chain(), "cannot refresh: {error}");
            Status::unavailable(shorten(error.message(), MAX_STATUS_BYTES))
        })?;
        Defects::of(check_tools(&tools)).map_err(|defects| {
            tracing::error!("refreshed tools cannot be served: {defects}");
            Status::internal(shorten(&defects.to_string(), MAX_STATUS_BYTES))
        })?;
        let told = self.about.capabilities(&self.name, &tools);
        replace(&self.tools, tools.into());
        Ok(Response::new(told))
    }

    type ExecuteBidiStream = tokio_stream::Empty<Result<PluginMessage, Status>>;

    async fn execute_bidi(
        &self,
        _: Request<Streaming<HostMessage>>,
    ) -> Result<Response<Self::ExecuteBidiStream>, Status> {
        Err(Status::unimplemented("this plugin makes no callbacks; use Execute"))
    }
}
