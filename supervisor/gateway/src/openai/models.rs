//! The models that a request may name.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use talon_proto::agent::ListModelsRequest;
use utoipa::ToSchema;

use super::fields::AGENT;
use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::input::Path;
use crate::problem::{Problem, ProblemKind};

/// The models that a request may name.
#[derive(Serialize, ToSchema)]
pub(super) struct ModelList {
    object: &'static str,
    data: Vec<ModelEntry>,
}

/// One of them.
#[derive(Serialize, ToSchema)]
pub(super) struct ModelEntry {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: String,
}

impl ModelEntry {
    fn new(id: String) -> Self {
        let owned_by = id.split('/').next().unwrap_or_default().to_owned();
        Self { id, object: "model", created: 0, owned_by }
    }
}

/// The agent, the tiers by which it routes, its models and their aliases, and the model that makes vectors.
async fn known(app: &App, caller: &Caller) -> Result<Vec<String>, Problem> {
    let listed = app.backends.agent(caller).list_models(ListModelsRequest {}).await?.into_inner();
    let tiers: BTreeSet<String> =
        listed.models.iter().map(|model| format!("{AGENT}/{}", model.tier)).collect();
    let names =
        listed.models.into_iter().flat_map(|model| [model.id, model.alias]).chain([listed.embeddings]);
    let names = tiers.into_iter().chain(names);
    let mut known = vec![AGENT.to_owned()];
    for name in names.filter(|name| !name.is_empty()) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    Ok(known)
}

/// The agent, its models and their aliases.
#[utoipa::path(get, path = "/v1/models", tag = "openai", responses((status = OK, body = ModelList)))]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<ModelList>, Problem> {
    require_chat(&caller)?;
    let data = known(&app, &caller).await?.into_iter().map(ModelEntry::new).collect();
    Ok(Json(ModelList { object: "list", data }))
}

/// One model. Its name has slashes, which a path template cannot say: it may be sent as it is, or with each slash as %2F.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "openai", params(("model" = String, Path)), responses((status = OK, body = ModelEntry)))]
pub(super) async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ModelEntry>, Problem> {
    require_chat(&caller)?;
    let found = known(&app, &caller).await?.into_iter().find(|known| *known == name);
    found.map(ModelEntry::new).map(Json).ok_or_else(|| {
        Problem::new(ProblemKind::NotFound, "there is no such model: GET /v1/models lists those that are")
            .with_fields(["model"])
            .with_code("model_not_found")
    })
}
