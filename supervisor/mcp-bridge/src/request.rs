//! A request to the server, and its answer.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomResult, ErrorData, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::Value;
use talon_bridge::text::{MAX_ERROR_TEXT_BYTES, cut};
use talon_error_chain::error_chain;
use talon_sdk::{Context, ToolError};

use crate::server_handle::ServerHandle;

/// The reason that a server gets with a cancelled request.
const CANCEL_REASON: &str = "the caller does not wait any more";
/// How much of an error's data is shown.
const MAX_DATA_BYTES: usize = 400;

/// A result as JSON, whichever type the library decoded it to.
pub(crate) fn result_value(result: ServerResult) -> Result<Value, ServiceError> {
    match result {
        ServerResult::CustomResult(CustomResult(value)) => Ok(value),
        other => serde_json::to_value(other).map_err(|_| ServiceError::UnexpectedResponse),
    }
}

/// A server's error response.
pub(crate) fn refusal(error: &ErrorData) -> ToolError {
    let data = match &error.data {
        Some(data) if !data.is_null() => format!(" ({})", cut(&data.to_string(), MAX_DATA_BYTES)),
        _ => String::new(),
    };
    let message = cut(&error.message, MAX_ERROR_TEXT_BYTES);
    ToolError::new(format!("the MCP server answers with error {}: {message}{data}", error.code.0))
}

/// Sends the request of a call, passes progress on, and returns the result as JSON, or cancels the request when the
/// deadline passes or the caller is gone.
pub(crate) async fn answer(
    server: &ServerHandle,
    request: ClientRequest,
    cx: &Context,
) -> Result<Value, ToolError> {
    SentRequest::send(server, request).await?.answer(server, cx).await
}

/// A request that was sent. It is cancelled at the server when it is dropped without an answer.
pub(crate) struct SentRequest(CancelOnDrop);

impl SentRequest {
    pub(crate) async fn send(server: &ServerHandle, request: ClientRequest) -> Result<Self, ToolError> {
        let sent = server.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        match sent {
            Ok(handle) => Ok(Self(CancelOnDrop(Some(handle)))),
            Err(error) => Err(transport_error(server, &error).await),
        }
    }

    /// Waits for the answer, until the deadline of this call. May be dropped and called again.
    pub(crate) async fn answer(&mut self, server: &ServerHandle, cx: &Context) -> Result<Value, ToolError> {
        let Some(handle) = self.0.0.as_mut() else {
            return Err(transport_error(server, &ServiceError::TransportClosed).await);
        };
        let _watching = server.progress.watch(handle.progress_token.clone(), cx.clone());
        let answered = match cx.deadline() {
            Some(deadline) => match tokio::time::timeout_at(deadline, &mut handle.rx).await {
                Ok(answered) => answered,
                Err(_) => {
                    return Err(ToolError::new(
                        "the MCP server did not answer in time; the call is cancelled there",
                    ));
                }
            },
            None => (&mut handle.rx).await,
        };
        self.0.0 = None;
        match answered {
            Ok(Ok(result)) => match result_value(result) {
                Ok(value) => Ok(value),
                Err(error) => Err(transport_error(server, &error).await),
            },
            Ok(Err(ServiceError::McpError(error))) => Err(refusal(&error)),
            Ok(Err(error)) => Err(transport_error(server, &error).await),
            Err(_) => Err(transport_error(server, &ServiceError::TransportClosed).await),
        }
    }
}

/// A failure of the transport, as the caller reads it.
async fn transport_error(server: &ServerHandle, error: &ServiceError) -> ToolError {
    match error {
        ServiceError::TransportClosed => {
            server.ended().await;
            ToolError::new("the MCP server ended its answer before it was complete")
        }
        ServiceError::TransportSend(error) => {
            if server.is_process {
                server.ended().await;
            }
            ToolError::new(format!("the MCP server cannot be reached: {}", error_chain(error.error.as_ref())))
        }
        other => {
            ToolError::new(format!("the MCP server did not answer as it should: {}", error_chain(other)))
        }
    }
}

/// Cancels the request at the server when it is dropped: the caller disconnected, or the deadline passed.
/// From then on the request is no longer pending.
struct CancelOnDrop(Option<RequestHandle<RoleClient>>);

/// Sends a request that belongs to no call.
pub(crate) async fn ask(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
) -> Result<ServerResult, ServiceError> {
    let handle = peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
    let mut given_up = CancelOnDrop(Some(handle));
    let Some(handle) = given_up.0.as_mut() else { return Err(ServiceError::TransportClosed) };
    let answered = (&mut handle.rx).await;
    given_up.0 = None;
    answered.map_err(|_| ServiceError::TransportClosed)?
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(async move {
                if handle.cancel(Some(CANCEL_REASON.to_owned())).await.is_err() {
                    tracing::debug!("a question could not be taken back: the MCP server is gone");
                }
            });
        }
    }
}
