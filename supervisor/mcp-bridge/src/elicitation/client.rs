//! What the library calls for requests of the server.

#![expect(deprecated, reason = "sampling is to leave the protocol one day, and servers use it today")]

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorCode,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, ErrorData, RoleClient};

use super::questions::Questions;
use crate::sampling::Sampling;

/// The bridge as a client of its server.
pub(crate) struct BridgeClient {
    pub(crate) config: ClientConfig,
    pub(crate) questions: Questions,
    pub(crate) sampling: Sampling,
}

impl ClientHandler for BridgeClient {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(&request).unwrap_or_default();
        let answer = tokio::select! {
            // The server takes its request back.
            () = context.ct.cancelled() => {
                return Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, "it was cancelled", None));
            }
            answer = self.sampling.answer_any(&params) => answer,
        };
        let answer = answer.inspect_err(|error| {
            tracing::info!("the MCP server asks a model for something, and it is refused: {error}");
        })?;
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(&request).unwrap_or_default();
        let answer = tokio::select! {
            // The server takes its question back.
            () = context.ct.cancelled() => return Ok(ElicitResult::new(ElicitationAction::Cancel)),
            answer = self.questions.ask(&params) => answer,
        };
        serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}
