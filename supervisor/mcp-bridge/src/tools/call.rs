//! One call of a tool: sends the arguments, passes progress on, and returns the answer or cancels the
//! request.

use std::collections::BTreeMap;

use rmcp::RoleClient;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use talon_error_chain::error_chain;
use talon_sdk::{Context, Output, Tool, ToolError};

use super::arguments::ServerArguments;
use super::offer::OfferedTool;
use super::{result_value, results};
use crate::server_handle::ServerHandle;

/// The reason that a server gets with a cancelled request.
const CANCEL_REASON: &str = "the caller does not wait any more";

/// An SDK tool for an offered tool.
pub(crate) fn tool(offer: OfferedTool, server: ServerHandle) -> Tool {
    let OfferedTool { tool, action, reader } = offer;
    Tool::dynamic(action, move |args: BTreeMap<String, String>, cx: Context| {
        let (tool, server) = (tool.clone(), server.clone());
        let read = reader.read(&args, cx.arguments()).map_err(|error| ToolError::new(error.to_string()));
        async move { call(&server, tool, read?, &cx).await }
    })
}

async fn call(
    server: &ServerHandle,
    tool: String,
    args: ServerArguments,
    cx: &Context,
) -> Result<Output, ToolError> {
    let params = CallToolRequestParams::new(tool).with_arguments(args.object);
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(args.raw);
    let request = ClientRequest::CallToolRequest(request);
    let sent = server.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
    let handle = match sent {
        Ok(handle) => handle,
        Err(error) => return Err(transport_error(server, &error).await),
    };
    let _watching = server.progress.watch(handle.progress_token.clone(), cx.clone());
    let mut given_up = CancelOnDrop(Some(handle));
    let Some(handle) = given_up.0.as_mut() else {
        return Err(transport_error(server, &ServiceError::TransportClosed).await);
    };
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
    given_up.0 = None;
    match answered {
        Ok(Ok(result)) => match result_value(result) {
            Ok(value) => results::answer(value),
            Err(error) => Err(transport_error(server, &error).await),
        },
        Ok(Err(ServiceError::McpError(error))) => Err(results::refusal(&error)),
        Ok(Err(error)) => Err(transport_error(server, &error).await),
        Err(_) => Err(transport_error(server, &ServiceError::TransportClosed).await),
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

/// Sends a request other than a tool call.
pub(super) async fn ask(
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
