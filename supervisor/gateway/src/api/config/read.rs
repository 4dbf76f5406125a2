//! What the configuration is, where each value is written, and what was changed.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::ETAG;
use serde::Serialize;
use serde_json::Value;
use talon_config_json::json;
use talon_proto::host::{self, GetConfigRequest, GetConfigResponse, ListConfigChangesRequest, ReloadRequest};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::values::tree;
use crate::api::page::Page;
use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get))
        .routes(routes!(sources))
        .routes(routes!(history))
        .routes(routes!(check))
}

/// The tag of a revision, strong: it changes whenever a value does.
pub(super) fn etag(revision: &str) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

async fn read(app: &App, caller: &Caller) -> Result<GetConfigResponse, Problem> {
    caller.require(Scope::Admin)?;
    Ok(app.backends.host(caller).get_config(GetConfigRequest {}).await?.into_inner())
}

/// The configuration in force, without secrets (scope admin). `ETag` is its revision.
#[utoipa::path(get, path = "/api/config", tag = "operation", responses((status = OK, body = Object)))]
async fn get(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    let answer = read(&app, &caller).await?;
    let values = Value::Object(tree(&answer.entries));
    Ok(([(ETAG, etag(&answer.revision))], Json(values)).into_response())
}

/// The values of the configuration one by one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigSources {
    items: Vec<ConfigSource>,
    /// For `If-Match`.
    revision: String,
    /// The config file; empty if there is none.
    file: String,
    /// Where changes are written; empty if nothing may be changed while Talon runs.
    overlay: String,
    /// What may be changed: these keys, and all below them.
    overlay_keys: Vec<String>,
}

/// A value of the configuration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigSource {
    /// The steps of its key, joined by dots.
    key: String,
    /// The steps: names that the operator chose may have dots.
    path: Vec<String>,
    /// Of any type.
    value: Value,
    /// default, file, overlay, environment or flag
    source: String,
    /// File, line and column, or the variable, or the flag.
    #[serde(rename = "where")]
    place: String,
    /// Whether `PATCH /api/config` may set it.
    editable: bool,
    /// Why not, and what to do instead.
    why: String,
}

/// Every value of the configuration with where it is written, and whether it may be changed here (scope admin).
#[utoipa::path(get, path = "/api/config/sources", tag = "operation", responses((status = OK, body = ConfigSources)))]
async fn sources(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    let answer = read(&app, &caller).await?;
    let item = |entry: host::ConfigEntry| ConfigSource {
        key: entry.key.join("."),
        path: entry.key,
        value: entry.value.as_ref().map_or(Value::Null, json),
        source: entry.layer,
        place: entry.source,
        editable: entry.editable,
        why: entry.why,
    };
    let tag = etag(&answer.revision);
    let sources = ConfigSources {
        items: answer.entries.into_iter().map(item).collect(),
        revision: answer.revision,
        file: answer.file,
        overlay: answer.overlay,
        overlay_keys: answer.overlay_keys,
    };
    Ok(([(ETAG, tag)], Json(sources)).into_response())
}

/// A change that was made while Talon ran.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigChange {
    /// Counts up by one.
    revision: u64,
    /// In milliseconds since 1970.
    at: u64,
    /// Who made it.
    by: String,
    /// The keys, joined by dots.
    keys: Vec<String>,
    changes: Vec<ConfigKeyChange>,
}

/// A key of a change. Values are those of the overlay; absent where it had none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigKeyChange {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Value>,
}

/// What was changed while Talon ran, newest first (scope admin). The latest hundred changes are kept.
#[utoipa::path(get, path = "/api/config/history", tag = "operation", responses((status = OK, body = Page<ConfigChange>)))]
async fn history(State(app): State<App>, caller: Caller) -> Result<Json<Page<ConfigChange>>, Problem> {
    caller.require(Scope::Admin)?;
    let request = ListConfigChangesRequest { limit: 0 };
    let answer = app.backends.host(&caller).list_config_changes(request).await?.into_inner();
    let key = |change: host::ConfigKeyChange| ConfigKeyChange {
        key: change.key.join("."),
        before: change.before.as_ref().map(json),
        after: change.after.as_ref().map(json),
    };
    let change = |change: host::ConfigChange| ConfigChange {
        revision: change.number,
        at: change.unix_ms,
        by: change.by,
        keys: change.keys.iter().map(|key| key.key.join(".")).collect(),
        changes: change.keys.into_iter().map(key).collect(),
    };
    Ok(Json(Page::new(answer.changes.into_iter().map(change), String::new())))
}

/// What a reload would find.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigFileCheck {
    ok: bool,
    problems: Vec<String>,
    warnings: Vec<String>,
    /// Keys whose value would differ from what is in force.
    changed: Vec<String>,
    /// Of which the value differs, and that hold after the next start.
    needs_restart: Vec<String>,
}

/// Checks the config file as it is now, without bringing it into force (scope admin).
#[utoipa::path(get, path = "/api/config/check", tag = "operation", responses((status = OK, body = ConfigFileCheck)))]
async fn check(State(app): State<App>, caller: Caller) -> Result<Json<ConfigFileCheck>, Problem> {
    caller.require(Scope::Admin)?;
    let answer = app.backends.host(&caller).reload(ReloadRequest { dry_run: true }).await?.into_inner();
    Ok(Json(ConfigFileCheck {
        ok: answer.accepted,
        problems: answer.problems,
        warnings: answer.warnings,
        changed: answer.changed,
        needs_restart: answer.needs_restart,
    }))
}
