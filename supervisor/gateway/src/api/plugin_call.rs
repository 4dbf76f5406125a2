//! `POST /api/plugins/{name}/actions/{action}`: calls an action as oneself, through the guard as every call.

use axum::Json;
use axum::extract::State;
use prost::Message as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_proto::host::{ExecuteRequest, ExecuteResponse, GetRawAnswerRequest, Outcome};
use talon_proto::plugin::ToolResultResponse;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::require_operate;
use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::input::{JsonBody, Path};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(call))
}

/// What is called.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ActionCall {
    /// The arguments, with their types.
    #[serde(default)]
    #[schema(value_type = Object)]
    args: Map<String, Value>,
    /// Also the answer as the plugin sent it (scope admin), if the guard keeps it (`guard.keep_raw_bytes`).
    #[serde(default)]
    raw: bool,
}

/// What came of a call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActionAnswer {
    /// By which it is found in `/api/calls`, in events and in the audit log.
    id: String,
    /// ok, tool_error, refused or fault
    outcome: &'static str,
    /// The answer, or why there is none; neutralized.
    output: String,
    /// Structured content as JSON text; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured: Option<String>,
    /// A word for programs; empty if it succeeded.
    reason: String,
    duration_us: u64,
    /// The text as the plugin sent it: only to be shown as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
}

impl From<ExecuteResponse> for ActionAnswer {
    fn from(answer: ExecuteResponse) -> Self {
        let outcome = match answer.outcome() {
            Outcome::Ok => "ok",
            Outcome::ToolError => "tool_error",
            Outcome::Refused => "refused",
            Outcome::HostFault | Outcome::Unspecified => "fault",
        };
        Self {
            outcome,
            output: if answer.error.is_empty() { answer.content } else { answer.error },
            structured: Some(answer.structured_content).filter(|text| !text.is_empty()),
            reason: answer.reason,
            duration_us: answer.duration_us,
            id: answer.call_id,
            raw: None,
        }
    }
}

/// Calls an action as oneself (scope operate). That the guard or the tool says no is an answer.
#[utoipa::path(
    post, path = "/api/plugins/{name}/actions/{action}", tag = "plugins", params(("name" = String, Path), ("action" = String, Path)),
    request_body = ActionCall, responses((status = OK, body = ActionAnswer))
)]
async fn call(
    State(app): State<App>,
    caller: Caller,
    Path((plugin, action)): Path<(String, String)>,
    JsonBody(wish): JsonBody<ActionCall>,
) -> Result<Json<ActionAnswer>, Problem> {
    require_operate(&caller)?;
    if wish.raw {
        caller.require(Scope::Admin)?;
    }
    let mut host = app.backends.host(&caller);
    let arguments_json = Value::Object(wish.args).to_string();
    let request = ExecuteRequest { plugin, action, arguments_json, ..ExecuteRequest::default() };
    let mut answer = ActionAnswer::from(host.execute(request).await?.into_inner());
    if wish.raw {
        let request = GetRawAnswerRequest { call_id: answer.id.clone() };
        // Of a call that was refused there is none, and of others only while it is kept.
        if let Ok(raw) = host.get_raw_answer(request).await {
            let message = ToolResultResponse::decode(raw.into_inner().message.as_slice());
            answer.raw = message.ok().map(|message| message.content);
        }
    }
    Ok(Json(answer))
}
