//! `GET /api/costs`.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use talon_proto::agent::{self, GetCostsRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::access::{of_session, require_chat, session};
use super::input::Query;
use crate::app::App;
use crate::events::translate::dollars;
use crate::identity::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct CostQuery {
    /// Of one session; without it, of today.
    session_id: Option<String>,
}

/// What models cost.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Costs {
    /// Of the session that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Cost>,
    today: Cost,
    by_provider: Vec<NamedCost>,
    by_model: Vec<NamedCost>,
    /// What a session may cost, in US dollars; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_budget: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    day_budget: Option<f64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Cost {
    answers: u64,
    failures: u64,
    prompt_tokens: u64,
    cached_prompt_tokens: u64,
    completion_tokens: u64,
    /// In US dollars.
    cost: f64,
    /// Of this, what nobody counted.
    estimated: f64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NamedCost {
    name: String,
    cost: Cost,
}

impl From<agent::Cost> for Cost {
    fn from(cost: agent::Cost) -> Self {
        Self {
            answers: cost.answers,
            failures: cost.failures,
            prompt_tokens: cost.input_tokens,
            cached_prompt_tokens: cost.cached_input_tokens,
            completion_tokens: cost.output_tokens,
            cost: dollars(cost.cost_pico_usd),
            estimated: dollars(cost.estimated_pico_usd),
        }
    }
}

fn named(costs: Vec<agent::NamedCost>) -> Vec<NamedCost> {
    let one =
        |named: agent::NamedCost| NamedCost { name: named.name, cost: named.cost.unwrap_or_default().into() };
    costs.into_iter().map(one).collect()
}

/// What models cost: today, and one session.
#[utoipa::path(get, path = "/api/costs", tag = "agent", params(CostQuery), responses((status = OK, body = Costs)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<CostQuery>,
) -> Result<Json<Costs>, Problem> {
    require_chat(&caller)?;
    let session_id = match &query.session_id {
        Some(id) => session(&caller, id)?.to_owned(),
        None => String::new(),
    };
    let answer =
        app.backends.agent(&caller).get_costs(GetCostsRequest { session_id }).await.map_err(of_session)?;
    let answer = answer.into_inner();
    Ok(Json(Costs {
        session: query.session_id.and(answer.session).map(Cost::from),
        today: answer.today.unwrap_or_default().into(),
        by_provider: named(answer.by_provider),
        by_model: named(answer.by_model),
        session_budget: answer.session_budget_pico_usd.map(dollars),
        day_budget: answer.day_budget_pico_usd.map(dollars),
    }))
}
