//! `GET /api/doctor`: what is wrong with the machine, the configuration and the service, each with the fix.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use talon_proto::host::DiagnoseRequest;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::require_operate;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get))
}

/// What the doctor found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Diagnosis {
    /// The worst first.
    items: Vec<Finding>,
    /// When it looked, in milliseconds since 1970. It looks again half a minute later at the earliest.
    at: u64,
}

/// One check.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Finding {
    /// configuration, files, programs, supervisor, service, logs, machine or sandbox
    section: String,
    /// What was looked at.
    check: String,
    /// ok, warning or failed
    state: &'static str,
    message: String,
    /// Why it matters; empty if it is in order or obvious.
    why: String,
    /// What to do; empty if there is nothing to do.
    fix: String,
}

/// The report of `talon doctor --output json`, as far as it is shown.
#[derive(Debug, Deserialize)]
struct Report {
    checks: Vec<Check>,
}

#[derive(Debug, Deserialize)]
struct Check {
    section: String,
    check: String,
    status: String,
    message: String,
    #[serde(default)]
    why: String,
    #[serde(default, rename = "do")]
    fix: String,
}

impl From<Check> for Finding {
    fn from(check: Check) -> Self {
        let state = match check.status.as_str() {
            "ok" => "ok",
            "warn" => "warning",
            _ => "failed",
        };
        let Check { section, check, message, why, fix, .. } = check;
        Self { section, check, state, message, why, fix }
    }
}

/// Runs the doctor, or has its latest report (scope operate).
#[utoipa::path(get, path = "/api/doctor", tag = "operation", responses((status = OK, body = Diagnosis)))]
async fn get(State(app): State<App>, caller: Caller) -> Result<Json<Diagnosis>, Problem> {
    require_operate(&caller)?;
    let answer = app.backends.host(&caller).diagnose(DiagnoseRequest {}).await?.into_inner();
    let report: Report =
        serde_json::from_str(&answer.report_json).map_err(|error| Problem::defect(&error))?;
    let mut items: Vec<Finding> = report.checks.into_iter().map(Finding::from).collect();
    items.sort_by_key(|finding| match finding.state {
        "failed" => 0,
        "warning" => 1,
        _ => 2,
    });
    Ok(Json(Diagnosis { items, at: answer.unix_ms }))
}
