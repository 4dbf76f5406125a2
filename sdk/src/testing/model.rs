//! Canned completions, for tests: in-process, or served to a plugin binary as a host would.

use talon_proto::model::model_server::Model as Service;
use talon_proto::model::{CompleteRequest, CompleteResponse, GrantedModel, ListRequest, ListResponse};
use tonic::{Request, Response, Status};

use crate::model::{Canned, CompletionRequest, ModelError};

/// Models that give canned answers. Clones share them, so a test can check what a tool asked.
///
/// ```
/// use serde_json::json;
/// use talon_sdk::model::CompletionRequest;
/// use talon_sdk::testing::{Call, CannedModel};
/// use talon_sdk::{Context, ToolError};
///
/// #[talon_sdk::args]
/// struct Text { text: String }
///
/// /// Summarizes a text.
/// #[talon_sdk::tool(read_only)]
/// async fn summarize(args: Text, cx: Context) -> Result<String, ToolError> {
///     let request = CompletionRequest::new(args.text).system("One sentence.");
///     Ok(cx.model()?.complete(request).await?.text)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let model = CannedModel::answering("It rained.");
/// let output = Call::new(summarize()).args(json!({"text": "…"})).model(&model).run().await.unwrap();
/// assert_eq!(output.content(), "It rained.");
/// assert_eq!(model.requests()[0].instructions(), "One sentence.");
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CannedModel(Canned);

impl CannedModel {
    /// A model under the alias `default` that always says `text`.
    #[must_use]
    pub fn answering(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(["default"], move |_| Ok(text.clone()))
    }

    /// Models under these aliases; `answer` says what comes of a request.
    #[must_use]
    pub fn new<A: Into<String>>(
        aliases: impl IntoIterator<Item = A>,
        answer: impl Fn(&CompletionRequest) -> Result<String, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self(Canned::new(aliases.into_iter().map(Into::into).collect(), answer))
    }

    /// What was asked so far, the latest 10,000.
    #[must_use]
    pub fn requests(&self) -> Vec<CompletionRequest> {
        self.0.requests()
    }

    pub(crate) fn shared(&self) -> Canned {
        self.0.clone()
    }
}

#[tonic::async_trait]
impl Service for CannedModel {
    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let granted = self.0.granted();
        Ok(Response::new(ListResponse {
            models: granted.aliases.into_iter().map(|alias| GrantedModel { alias }).collect(),
            max_tokens: granted.max_tokens,
            max_calls: granted.max_calls,
            timeout_ms: u64::try_from(granted.timeout.as_millis()).unwrap_or(u64::MAX),
            own_budget: granted.own_budget,
        }))
    }

    async fn complete(
        &self,
        request: Request<CompleteRequest>,
    ) -> Result<Response<CompleteResponse>, Status> {
        let request = CompletionRequest::from_wire(request.into_inner());
        match self.0.complete(request).await {
            Ok(completion) => Ok(Response::new(completion.into_wire())),
            Err(error) => Err(error.to_status()),
        }
    }
}
