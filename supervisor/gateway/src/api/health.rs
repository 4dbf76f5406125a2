//! `GET /api/health`, `/api/ready`, `/api/health/deep`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use talon_proto::agent::GetSessionRequest;
use talon_proto::host::GetStatusRequest;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::backends::Backends;
use crate::identity::{Caller, Scope};

/// How long host and agent may take to show that they live. Both answer at once unless they hang or start.
const WITHIN: Duration = Duration::from_secs(2);

pub(super) fn open_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(ready))
}

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(deep))
}

/// What `/api/health` and `/api/ready` answer.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    status: HealthStatus,
}

/// Whether it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum HealthStatus {
    Ok,
    Unavailable,
}

/// What `/api/health/deep` answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeepHealth {
    status: HealthStatus,
    version: &'static str,
    host: BackendHealth,
    agent: BackendHealth,
    /// Why the last configuration was refused, so that an earlier one holds (scope operate); empty if it was not.
    config_problem: String,
}

/// Host or agent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BackendHealth {
    status: HealthStatus,
    latency_ms: f64,
}

/// The process lives.
#[utoipa::path(get, path = "/api/health", tag = "operation", security(()), responses((status = OK, body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: HealthStatus::Ok })
}

/// Host and agent answer, so that requests can be served.
#[utoipa::path(
    get, path = "/api/ready", tag = "operation", security(()),
    responses((status = OK, body = Health), (status = SERVICE_UNAVAILABLE, body = Health))
)]
async fn ready(State(app): State<App>) -> Response {
    let (host, agent) = look(&app.backends).await;
    let status = both(&host, &agent);
    (status_code(status), Json(Health { status })).into_response()
}

/// The same, with each of both and its time.
#[utoipa::path(
    get, path = "/api/health/deep", tag = "operation",
    responses((status = OK, body = DeepHealth), (status = SERVICE_UNAVAILABLE, body = DeepHealth))
)]
async fn deep(State(app): State<App>, caller: Caller) -> Response {
    let ((host, agent), config_problem) =
        tokio::join!(look(&app.backends), config_problem(&app.backends, &caller));
    let status = both(&host, &agent);
    let health = DeepHealth { status, version: env!("CARGO_PKG_VERSION"), host, agent, config_problem };
    (status_code(status), Json(health)).into_response()
}

/// Empty as well if the host does not say it in time: that it does not answer is said beside it.
async fn config_problem(backends: &Backends, caller: &Caller) -> String {
    if !caller.scopes.contain(Scope::Operate) {
        return String::new();
    }
    let mut host = backends.host(caller);
    let answered = timeout(WITHIN, host.get_status(GetStatusRequest {})).await;
    answered.ok().and_then(Result::ok).map(|answer| answer.into_inner().config_problem).unwrap_or_default()
}

async fn look(backends: &Backends) -> (BackendHealth, BackendHealth) {
    let caller = Caller::gateway();
    let (mut host, mut agent) = (backends.host(&caller), backends.agent(&caller));
    tokio::join!(
        look_at(async { host.get_status(GetStatusRequest {}).await.map(drop) }),
        // No session has an empty id: it refuses that at once, without its database.
        look_at(async { agent.get_session(GetSessionRequest::default()).await.map(drop) }),
    )
}

/// A refusal is an answer, too.
async fn look_at(ask: impl Future<Output = Result<(), Status>>) -> BackendHealth {
    let asked = Instant::now();
    let answered = match timeout(WITHIN, ask).await {
        Ok(Ok(())) => true,
        Ok(Err(status)) => !matches!(status.code(), Code::Unavailable | Code::Cancelled | Code::Unknown),
        Err(_) => false,
    };
    let status = if answered { HealthStatus::Ok } else { HealthStatus::Unavailable };
    BackendHealth { status, latency_ms: asked.elapsed().as_secs_f64() * 1e3 }
}

fn both(host: &BackendHealth, agent: &BackendHealth) -> HealthStatus {
    let all_ok = host.status == HealthStatus::Ok && agent.status == HealthStatus::Ok;
    if all_ok { HealthStatus::Ok } else { HealthStatus::Unavailable }
}

fn status_code(status: HealthStatus) -> StatusCode {
    match status {
        HealthStatus::Ok => StatusCode::OK,
        HealthStatus::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}
