//! `GET /api/models`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use talon_proto::agent::{self, ListModelsRequest};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A model that may answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Model {
    /// provider/name
    id: String,
    alias: String,
    tier: String,
    context_window: u64,
    supports_tools: bool,
    supports_vision: bool,
    /// In US dollars for a million tokens; empty if unknown.
    input_price: String,
    output_price: String,
    /// ready, resting, out or not_set_up
    state: String,
    /// Why it is not ready.
    why: String,
    /// What it is asked stays on this machine.
    local: bool,
}

impl From<agent::Model> for Model {
    fn from(model: agent::Model) -> Self {
        Self {
            id: model.id,
            alias: model.alias,
            tier: model.tier,
            context_window: model.context_window,
            supports_tools: model.tools,
            supports_vision: model.vision,
            input_price: model.input_price,
            output_price: model.output_price,
            state: model.state,
            why: model.why,
            local: model.local,
        }
    }
}

/// The models that may answer.
#[utoipa::path(get, path = "/api/models", tag = "agent", responses((status = OK, body = Page<Model>)))]
async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Page<Model>>, Problem> {
    require_chat(&caller)?;
    let answer = app.backends.agent(&caller).list_models(ListModelsRequest {}).await?.into_inner();
    Ok(Json(Page::new(answer.models.into_iter().map(Model::from), String::new())))
}
