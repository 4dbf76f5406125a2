//! Calls a plugin over its socket.

use std::path::Path;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use serde_json::Value;
use talon_proto::HEALTH_SERVICE;
use talon_proto::goplugin::Empty;
use talon_proto::goplugin::grpc_controller_client::GrpcControllerClient;
use talon_proto::notices::ListenRequest;
use talon_proto::notices::notices_client::NoticesClient;
use talon_proto::plugin::plugin_service_client::PluginServiceClient;
use talon_proto::plugin::{PluginCapabilities, PluginInitRequest, ToolCallRequest, ToolResultResponse};
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::{Events, Notices};

/// The largest answer that is read, as in real hosts.
const MAX_ANSWER_BYTES: usize = 8 << 20;
/// How much a plugin may send ahead on one call and on the connection.
const WINDOW_BYTES: u32 = 4 << 20;

/// What a tool answered over the wire.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The text; empty when there is an error.
    pub content: String,
    /// The error of the tool; `None` on success.
    pub error: Option<String>,
    /// The data beside the text.
    pub structured: Option<Value>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The plugin, or the connection to it, failed.
    #[error("the plugin answered {}: {}", .0.code(), .0.message())]
    Status(#[from] Box<Status>),
    /// A real host would discard this answer.
    #[error("a host would not accept the answer: {0}")]
    BadAnswer(String),
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl CallError {
    /// The gRPC status code, if it was a gRPC error.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Status(status) => Some(status.code()),
            Self::BadAnswer(_) => None,
        }
    }
}

/// A connection to a plugin.
#[derive(Debug, Clone)]
pub(super) struct Client {
    channel: Channel,
}

impl Client {
    pub(super) async fn connect(socket: &Path) -> Result<Self, tonic::transport::Error> {
        let socket = socket.to_owned();
        let channel = Endpoint::from_static("http://localhost")
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .connect_with_connector(tower::service_fn(move |_| {
                let socket = socket.clone();
                async move { UnixStream::connect(socket).await.map(TokioIo::new) }
            }))
            .await?;
        Ok(Self { channel })
    }

    fn plugin(&self) -> PluginServiceClient<Channel> {
        PluginServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    pub(super) async fn init(&self, config_json: String) -> Result<(), Status> {
        self.plugin().init(PluginInitRequest { config_json }).await?;
        Ok(())
    }

    pub(super) async fn capabilities(&self) -> Result<PluginCapabilities, Status> {
        Ok(self.plugin().capabilities(()).await?.into_inner())
    }

    pub(super) async fn refresh(&self) -> Result<Option<PluginCapabilities>, Status> {
        match self.plugin().refresh_capabilities(()).await {
            Ok(told) => Ok(Some(told.into_inner())),
            Err(status) if status.code() == Code::Unimplemented => Ok(None),
            Err(status) => Err(status),
        }
    }

    pub(super) async fn listen(&self) -> Result<Notices, Status> {
        let stream = NoticesClient::new(self.channel.clone()).listen(ListenRequest {}).await?;
        Ok(Notices::new(stream.into_inner()))
    }

    pub(super) async fn events(&self) -> Result<Events, Status> {
        Events::subscribe(self.channel.clone()).await
    }

    pub(super) async fn execute(
        &self,
        call: ToolCallRequest,
        timeout: Option<Duration>,
    ) -> Result<ToolResultResponse, Status> {
        let mut request = Request::new(call);
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        Ok(self.plugin().execute(request).await?.into_inner())
    }

    pub(super) async fn serving(&self) -> Result<bool, Status> {
        let request = HealthCheckRequest { service: HEALTH_SERVICE.to_owned() };
        let answer = HealthClient::new(self.channel.clone()).check(request).await?.into_inner();
        Ok(answer.status() == ServingStatus::Serving)
    }

    /// UNAVAILABLE counts as success: a server that stops at once cannot answer.
    pub(super) async fn shutdown(&self) -> Result<(), Status> {
        match GrpcControllerClient::new(self.channel.clone()).shutdown(Empty {}).await {
            Err(status) if status.code() != Code::Unavailable => Err(status),
            _ => Ok(()),
        }
    }
}

/// Checks an answer as a host does.
pub(super) fn accept(call_id: &str, answer: ToolResultResponse) -> Result<Answer, CallError> {
    if answer.call_id != call_id {
        return Err(CallError::BadAnswer(format!("it is for call {:?}, not {call_id:?}", answer.call_id)));
    }
    let structured = if answer.structured_content.is_empty() {
        None
    } else {
        let parsed = serde_json::from_str(&answer.structured_content);
        Some(parsed.map_err(|e| CallError::BadAnswer(format!("structured_content is not JSON: {e}")))?)
    };
    let error = Some(answer.error).filter(|error| !error.is_empty());
    Ok(Answer { content: answer.content, error, structured })
}
