//! `GET /api/tools`.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::agent::{self, ListToolsRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::{of_session, require_chat, session};
use crate::app::App;
use crate::identity::Caller;
use crate::input::Query;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct ToolQuery {
    /// As they are offered in this session; without it, to the caller.
    session_id: Option<String>,
}

/// A tool that models may call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    plugin: String,
    action: String,
    description: String,
    /// The JSON Schema of its arguments.
    parameters: Value,
    /// never, destructive or always: whether a call asks a person first.
    confirm: String,
    read_only: bool,
    /// Whether it declares that it destroys; absent if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
}

impl From<agent::Tool> for Tool {
    fn from(tool: agent::Tool) -> Self {
        Self {
            name: tool.name,
            plugin: tool.plugin,
            action: tool.action,
            description: tool.description,
            parameters: serde_json::from_str(&tool.parameters).unwrap_or(Value::Null),
            confirm: tool.confirm,
            read_only: tool.read_only,
            destructive: tool.destructive,
        }
    }
}

/// The tools that models may call for the caller.
#[utoipa::path(get, path = "/api/tools", tag = "agent", params(ToolQuery), responses((status = OK, body = Page<Tool>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ToolQuery>,
) -> Result<Json<Page<Tool>>, Problem> {
    require_chat(&caller)?;
    let session_id = match &query.session_id {
        Some(id) => session(&caller, id)?.to_owned(),
        None => String::new(),
    };
    let answer =
        app.backends.agent(&caller).list_tools(ListToolsRequest { session_id }).await.map_err(of_session)?;
    Ok(Json(Page::new(answer.into_inner().tools.into_iter().map(Tool::from), String::new())))
}
