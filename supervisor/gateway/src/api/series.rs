//! `GET /api/series`: what happened in the last day, in steps of ten seconds.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use talon_proto::host::{GetSeriesRequest, SeriesSample};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::require_operate;
use crate::app::App;
use crate::identity::Caller;
use crate::input::Query;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct SeriesQuery {
    /// Only samples after this time, in milliseconds since 1970; without it, all of the last day.
    after: Option<u64>,
}

/// What happened over all plugins, a list for each number: entries at one place belong together. At most 8,640 of each.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SeriesLists {
    /// How far samples lie apart, in milliseconds.
    step_ms: u32,
    /// When each step ended, in milliseconds since 1970, oldest first.
    at: Vec<u64>,
    calls: Vec<u64>,
    tool_errors: Vec<u64>,
    refusals: Vec<u64>,
    faults: Vec<u64>,
    /// Answers in which control syntax was neutralized.
    tainted: Vec<u64>,
    /// In microseconds, of the latest minutes.
    p50_us: Vec<u64>,
    p99_us: Vec<u64>,
    calls_in_flight: Vec<u32>,
    calls_waiting: Vec<u32>,
    plugins_ready: Vec<u32>,
}

impl SeriesLists {
    fn of(step_ms: u32, samples: Vec<SeriesSample>) -> Self {
        let mut lists = Self { step_ms, ..Self::default() };
        for sample in samples {
            lists.at.push(sample.unix_ms);
            lists.calls.push(sample.calls);
            lists.tool_errors.push(sample.tool_errors);
            lists.refusals.push(sample.refusals);
            lists.faults.push(sample.faults);
            lists.tainted.push(sample.tainted);
            lists.p50_us.push(sample.p50_us);
            lists.p99_us.push(sample.p99_us);
            lists.calls_in_flight.push(sample.calls_in_flight);
            lists.calls_waiting.push(sample.calls_waiting);
            lists.plugins_ready.push(sample.plugins_ready);
        }
        lists
    }
}

/// Numbers of the last day in steps of ten seconds (scope operate).
#[utoipa::path(get, path = "/api/series", tag = "operation", params(SeriesQuery), responses((status = OK, body = SeriesLists)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<SeriesQuery>,
) -> Result<Json<SeriesLists>, Problem> {
    require_operate(&caller)?;
    let request = GetSeriesRequest { after_unix_ms: query.after.unwrap_or_default() };
    let answer = app.backends.host(&caller).get_series(request).await?.into_inner();
    Ok(Json(SeriesLists::of(answer.step_ms, answer.samples)))
}
