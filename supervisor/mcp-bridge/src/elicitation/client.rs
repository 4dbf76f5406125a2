//! What the library calls for requests of the server.

use rmcp::model::{ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, ErrorData, RoleClient};

use super::questions::Questions;

/// The bridge as a client of its server.
pub(crate) struct BridgeClient {
    pub(crate) config: ClientConfig,
    pub(crate) questions: Questions,
}

impl ClientHandler for BridgeClient {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
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
