//! Jobs at planned times: `GET /api/schedule`, `GET /api/schedule/history`, run, pause and resume.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::agent::{self, ListJobsRequest, ListOccurrencesRequest, PauseJobRequest, RunJobRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::require_operate;
use crate::app::App;
use crate::events::ids::session_id;
use crate::identity::Caller;
use crate::input::{JsonBody, Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(history))
        .routes(routes!(run))
        .routes(routes!(change))
}

/// A job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Job {
    id: String,
    /// As it is configured: `cron 0 9 * * 1-5`, `every 6h` or `at 2026-12-24T17:00:00Z`.
    when: String,
    timezone: String,
    target: String,
    paused: bool,
    /// The configuration says so: then it cannot be resumed here.
    paused_by_configuration: bool,
    /// In milliseconds since 1970; absent if it never begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Occurrence>,
}

/// A planned time of a job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Occurrence {
    job: String,
    /// In milliseconds since 1970.
    planned_at: u64,
    /// planned, late or manual
    kind: String,
    /// planned, running, done, failed or missed
    state: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<u64>,
    /// Where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// Why it failed, was missed, or is tried again.
    note: String,
    result: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_result: Option<Value>,
}

impl From<agent::Occurrence> for Occurrence {
    fn from(occurrence: agent::Occurrence) -> Self {
        let session = Some(occurrence.session_id).filter(|id| !id.is_empty());
        Self {
            job: occurrence.job,
            planned_at: occurrence.planned_unix_ms,
            kind: occurrence.kind,
            state: occurrence.state,
            attempt: occurrence.attempt,
            started_at: occurrence.started_unix_ms,
            ended_at: occurrence.ended_unix_ms,
            session_id: session.map(|id| session_id(&id)),
            note: occurrence.note,
            result: occurrence.result,
            structured_result: serde_json::from_str(&occurrence.structured_result_json).ok(),
        }
    }
}

impl From<agent::Job> for Job {
    fn from(job: agent::Job) -> Self {
        Self {
            id: job.id,
            when: job.when,
            timezone: job.timezone,
            target: job.target,
            paused: job.paused,
            paused_by_configuration: job.paused_by_configuration,
            next_at: job.next_unix_ms,
            last: job.last.map(Occurrence::from),
        }
    }
}

/// The jobs (scope operate).
#[utoipa::path(get, path = "/api/schedule", tag = "operation", responses((status = OK, body = Page<Job>)))]
async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Page<Job>>, Problem> {
    require_operate(&caller)?;
    let answer = app.backends.agent(&caller).list_jobs(ListJobsRequest {}).await?.into_inner();
    Ok(Json(Page::new(answer.jobs.into_iter().map(Job::from), String::new())))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// Of one job.
    job: Option<String>,
    /// How many at most.
    limit: Option<u32>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// What jobs did and will do, the latest planned time first (scope operate).
#[utoipa::path(get, path = "/api/schedule/history", tag = "operation", params(HistoryQuery), responses((status = OK, body = Page<Occurrence>)))]
async fn history(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<Page<Occurrence>>, Problem> {
    require_operate(&caller)?;
    let request = ListOccurrencesRequest {
        job: query.job.unwrap_or_default(),
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    };
    let answer = app.backends.agent(&caller).list_occurrences(request).await?.into_inner();
    Ok(Json(Page::new(answer.occurrences.into_iter().map(Occurrence::from), answer.next_page_token)))
}

/// Has a job run now, beside its planned times (scope operate).
#[utoipa::path(post, path = "/api/schedule/{job}/run", tag = "operation", params(("job" = String, Path)), responses((status = OK, body = Occurrence)))]
async fn run(
    State(app): State<App>,
    caller: Caller,
    Path(job): Path<String>,
) -> Result<Json<Occurrence>, Problem> {
    require_operate(&caller)?;
    let answer = app.backends.agent(&caller).run_job(RunJobRequest { job }).await?.into_inner();
    Ok(Json(answer.into()))
}

/// What of a job changes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JobChange {
    /// Whether it rests.
    paused: bool,
}

/// Lets a job rest, or go on (scope operate).
#[utoipa::path(
    patch, path = "/api/schedule/{job}", tag = "operation", params(("job" = String, Path)), request_body = JobChange,
    responses((status = OK, body = Job))
)]
async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(job): Path<String>,
    JsonBody(change): JsonBody<JobChange>,
) -> Result<Json<Job>, Problem> {
    require_operate(&caller)?;
    let request = PauseJobRequest { job, paused: change.paused };
    Ok(Json(app.backends.agent(&caller).pause_job(request).await?.into_inner().into()))
}
