//! `GET /api/extensions`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use talon_proto::host::{self, GetStatusRequest};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::require_operate;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// An action that plays a role.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Extension {
    role: String,
    /// Its entry's name.
    name: String,
    /// plugin.action
    action: String,
    /// ready, waiting or failing
    state: String,
    /// Why it does not work, with what to do; empty if it does.
    reason: String,
    /// Whether the action declares the role.
    declared: bool,
}

impl From<host::Extension> for Extension {
    fn from(extension: host::Extension) -> Self {
        Self {
            role: extension.role,
            name: extension.name,
            action: extension.action,
            state: extension.state,
            reason: extension.reason,
            declared: extension.declared,
        }
    }
}

/// The entries of `extensions` (scope operate).
#[utoipa::path(get, path = "/api/extensions", tag = "operation", responses((status = OK, body = Page<Extension>)))]
async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Page<Extension>>, Problem> {
    require_operate(&caller)?;
    let answer = app.backends.host(&caller).get_status(GetStatusRequest {}).await?.into_inner();
    Ok(Json(Page::new(answer.extensions.into_iter().map(Extension::from), String::new())))
}
