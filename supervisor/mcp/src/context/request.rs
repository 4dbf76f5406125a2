//! One call of such an action.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::Value;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};

use crate::answer_meta::meta;
use crate::host::Host;

/// The reason of an answer with which a tool says no.
const TOOL_ERROR: &str = "tool_error";

/// Calls the actions for one client.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    pub(crate) host: Host,
    /// The client's conversation, as of its calls of tools.
    pub(crate) session: Arc<str>,
}

impl Requester {
    /// Calls an action with these arguments, within `timeout` or what is configured. It is the client that asks, and no
    /// model: MCP leaves the choice of resources to the application, and that of prompts to its user.
    ///
    /// # Errors
    /// An answer that is none, guarded as the client would get it from a tool.
    pub(super) async fn call(
        &self,
        plugin: &str,
        action: &str,
        arguments: &Value,
        timeout: Option<Duration>,
    ) -> Result<ExecuteResponse, ErrorData> {
        let request = ExecuteRequest {
            plugin: plugin.to_owned(),
            action: action.to_owned(),
            arguments_json: arguments.to_string(),
            context: [("session_id".to_owned(), self.session.to_string())].into(),
            timeout_ms: timeout.map_or(0, |timeout| timeout.as_millis().try_into().unwrap_or(u64::MAX)),
            for_model: false,
            wants_media: true,
            ..ExecuteRequest::default()
        };
        // Boxed to keep it out of the server's own future.
        let answered = Box::pin(self.host.reconnecting().execute_watched(request, None)).await;
        let answer =
            answered.map_err(|error| ErrorData::internal_error(self.host.explain_call(&error), None))?;
        if answer.outcome() == Outcome::Ok {
            return Ok(answer);
        }
        let code =
            if answer.reason == TOOL_ERROR { ErrorCode::INVALID_PARAMS } else { ErrorCode::INTERNAL_ERROR };
        let about = Value::Object(meta(&answer).0.into_iter().collect());
        Err(ErrorData::new(code, answer.block, Some(about)))
    }
}
