//! Changes of the configuration: checked whole, and refused whole.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{ETAG, IF_MATCH};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::host::{PatchConfigRequest, PatchConfigResponse};
use tonic::Code;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::merge_patch::edits;
use super::read::etag;
use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::input::{JsonBody, Query};
use crate::problem::{Problem, ProblemKind};

/// How many problems the detail of a refusal says; its fields name all keys.
const MAX_TOLD: usize = 10;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(patch)).routes(routes!(check))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct PatchQuery {
    /// Only says what would be done.
    #[serde(default)]
    dry_run: bool,
}

/// What a change does.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigChangeResult {
    /// For the next `If-Match`.
    revision: String,
    /// Keys whose value differs, and that hold from now on.
    changed: Vec<String>,
    /// Keys that hold after the next start of Talon.
    needs_restart: Vec<String>,
    warnings: Vec<String>,
}

impl From<PatchConfigResponse> for ConfigChangeResult {
    fn from(answer: PatchConfigResponse) -> Self {
        let PatchConfigResponse { revision, changed, needs_restart, warnings, .. } = answer;
        Self { revision, changed, needs_restart, warnings }
    }
}

/// Changes the configuration by a JSON merge patch (RFC 7396; scope admin): what `GET /api/config/sources` calls editable. It is checked whole
/// and refused whole, holds at once and over restarts, and `null` gives way to what the config file says. With `If-Match`, only if the
/// configuration is still of that revision.
#[utoipa::path(
    patch, path = "/api/config", tag = "operation", params(PatchQuery, ("if-match" = Option<String>, Header)), request_body = Object,
    responses((status = OK, body = ConfigChangeResult))
)]
async fn patch(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PatchQuery>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, Problem> {
    let request =
        PatchConfigRequest { edits: edits(body)?, dry_run: query.dry_run, revision: revision(&headers)? };
    let answer = send(&app, &caller, request).await?;
    if !answer.accepted {
        return Err(refused(&answer));
    }
    let tag = etag(&answer.revision);
    Ok(([(ETAG, tag)], Json(ConfigChangeResult::from(answer))).into_response())
}

/// What a patch would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigCheck {
    ok: bool,
    /// Why it would be refused.
    errors: Vec<ConfigError>,
    changed: Vec<String>,
    needs_restart: Vec<String>,
    warnings: Vec<String>,
}

/// Why a key is refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ConfigError {
    /// Empty if it is about the whole.
    key: String,
    message: String,
}

/// Checks a patch without bringing it into force (scope admin).
#[utoipa::path(post, path = "/api/config/check", tag = "operation", request_body = Object, responses((status = OK, body = ConfigCheck)))]
async fn check(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<Value>,
) -> Result<Json<ConfigCheck>, Problem> {
    let request = PatchConfigRequest { edits: edits(body)?, dry_run: true, revision: String::new() };
    let answer = send(&app, &caller, request).await?;
    let error = |problem: talon_proto::host::ConfigProblem| ConfigError {
        key: problem.key,
        message: problem.message,
    };
    Ok(Json(ConfigCheck {
        ok: answer.accepted,
        errors: answer.problems.into_iter().map(error).collect(),
        changed: answer.changed,
        needs_restart: answer.needs_restart,
        warnings: answer.warnings,
    }))
}

async fn send(
    app: &App,
    caller: &Caller,
    request: PatchConfigRequest,
) -> Result<PatchConfigResponse, Problem> {
    caller.require(Scope::Admin)?;
    let answer = app.backends.host(caller).patch_config(request).await;
    answer.map(tonic::Response::into_inner).map_err(|status| match status.code() {
        Code::Aborted => {
            Problem::new(ProblemKind::PreconditionFailed, status.message()).with_fields(["if-match"])
        }
        _ => status.into(),
    })
}

fn refused(answer: &PatchConfigResponse) -> Problem {
    let told = answer.problems.iter().take(MAX_TOLD).map(|problem| match problem.key.as_str() {
        "" => problem.message.clone(),
        key => format!("{key} {}", problem.message),
    });
    let detail = format!("nothing was changed: {}", told.collect::<Vec<_>>().join("; "));
    let keys = answer.problems.iter().map(|problem| problem.key.clone()).filter(|key| !key.is_empty());
    Problem::new(ProblemKind::Unprocessable, detail).with_fields(keys)
}

/// The revision of `If-Match`; empty without one, and for `*`, which any revision is.
fn revision(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(value) = headers.get(IF_MATCH) else { return Ok(String::new()) };
    let value = value.to_str().unwrap_or_default().trim();
    if value == "*" {
        return Ok(String::new());
    }
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let is_tag = |tag: &&str| !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric());
    quoted.filter(is_tag).map(str::to_owned).ok_or_else(|| {
        let detail = "If-Match is no tag of this configuration: send ETag of GET /api/config as it is";
        Problem::new(ProblemKind::BadRequest, detail).with_fields(["if-match"])
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_tag_is_a_revision() {
        let read = |value: &'static str| {
            revision(&[(IF_MATCH, HeaderValue::from_static(value))].into_iter().collect::<HeaderMap>())
        };
        assert_eq!(read("\"0a1b\""), Ok("0a1b".to_owned()));
        assert_eq!(read("*"), Ok(String::new()));
        assert_eq!(revision(&HeaderMap::new()), Ok(String::new()));
        for wrong in ["0a1b", "\"\"", "W/\"0a\"", "\"a\", \"b\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
