//! `GET /api/plugins/{name}`: one plugin with its actions, what it may do, and the roles that it plays.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use talon_proto::host::{self, GetPluginRequest, GetStatusRequest};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::plugins::{Plugin, no_plugin};
use crate::access::require_chat;
use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::input::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get))
}

/// A plugin with its actions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PluginDetails {
    plugin: Plugin,
    description: String,
    actions: Vec<Action>,
    settings: PluginSettings,
    /// What it declares of roles, and what of it the configuration grants (scope operate).
    roles: Vec<PluginRole>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Action {
    name: String,
    description: String,
    parameters: Vec<Parameter>,
    /// Only people may call it.
    user_only: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Parameter {
    name: String,
    description: String,
    #[serde(rename = "type")]
    kind: String,
    required: bool,
}

/// How a plugin is run, and what it may do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PluginSettings {
    /// The program (scope operate).
    command: String,
    /// Of the program, which is its version (scope operate).
    sha256: String,
    /// How it speaks.
    dialect: String,
    /// Of a call, in milliseconds.
    timeout: u64,
    /// enforce, best-effort or off
    sandbox_mode: String,
    /// The profile of its system calls.
    sandbox_profile: String,
    /// none, loopback, proxy or full
    sandbox_network: String,
    /// What it may use of the host beyond what every plugin may (scope operate): `fs.read /srv/code`.
    sandbox_grants: Vec<String>,
    /// What happens to actions that are not what was approved: report or block.
    changed_tools: String,
    /// What its actions get of a caller's context.
    context: Vec<String>,
    /// The language models that it may ask, by the names it has for them.
    models: Vec<String>,
}

impl From<host::Settings> for PluginSettings {
    fn from(settings: host::Settings) -> Self {
        Self {
            command: settings.command,
            sha256: settings.sha256,
            dialect: settings.dialect,
            timeout: settings.timeout_ms,
            sandbox_mode: settings.sandbox_mode,
            sandbox_profile: settings.sandbox_profile,
            sandbox_network: settings.sandbox_network,
            sandbox_grants: settings.sandbox_grants,
            changed_tools: settings.changed_tools,
            context: settings.context,
            models: settings.models.map(|models| models.aliases).unwrap_or_default(),
        }
    }
}

/// How a plugin and a role stand to each other.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PluginRole {
    role: String,
    /// How many of its actions declare the role.
    declared: u32,
    /// How many entries of the configuration give it to one of its actions; how many of those work, wait, or fail.
    granted: u32,
    ready: u32,
    waiting: u32,
    failing: u32,
}

impl From<host::PluginRole> for PluginRole {
    fn from(role: host::PluginRole) -> Self {
        let host::PluginRole { role, declared, granted, ready, waiting, failing, .. } = role;
        Self { role, declared, granted, ready, waiting, failing }
    }
}

/// A plugin, its actions, and what it may do.
#[utoipa::path(get, path = "/api/plugins/{name}", tag = "plugins", params(("name" = String, Path)), responses((status = OK, body = PluginDetails)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<PluginDetails>, Problem> {
    require_chat(&caller)?;
    let mut host = app.backends.host(&caller);
    let request = GetPluginRequest { name: name.clone(), for_model: false };
    let answer = host.get_plugin(request).await.map_err(no_plugin)?.into_inner();
    let roles = if caller.scopes.contain(Scope::Operate) {
        host.get_status(GetStatusRequest {}).await?.into_inner().plugin_roles
    } else {
        Vec::new()
    };
    let capabilities = answer.capabilities.unwrap_or_default();
    let actions = capabilities.actions.into_iter().map(|action| Action {
        name: action.name,
        description: action.description,
        user_only: action.user_only,
        parameters: action
            .parameters
            .into_iter()
            .map(|parameter| Parameter {
                name: parameter.name,
                description: parameter.description,
                kind: parameter.r#type,
                required: parameter.required,
            })
            .collect(),
    });
    Ok(Json(PluginDetails {
        plugin: answer.plugin.unwrap_or_default().into(),
        description: capabilities.description,
        actions: actions.collect(),
        settings: answer.settings.unwrap_or_default().into(),
        roles: roles.into_iter().filter(|role| role.plugin == name).map(PluginRole::from).collect(),
    }))
}
