//! `GET /api/costs`.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use talon_proto::agent::{self, GetCostsRequest, ListCostsRequest, ListSessionsRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::{of_session, require_chat, session};
use crate::app::App;
use crate::events::translate::dollars;
use crate::identity::{Caller, Scope};
use crate::input::Query;
use crate::problem::Problem;

/// Sessions that are looked at for their costs: pages of the largest size, five of them.
const SESSION_PAGE: u32 = 200;
const SESSION_PAGES: usize = 5;
/// The most rows of an answer.
const MAX_ROWS: usize = 500;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct CostQuery {
    /// Of one session; without it, of today.
    session_id: Option<String>,
    /// Also `rows`: what was spent over the latest days, by day or by model (scope operate), or by session of those that the caller sees.
    #[param(inline)]
    by: Option<CostsBy>,
    /// How many days `by` day and model look at, today included; up to 90. Without it, 30.
    days: Option<u32>,
}

/// By what costs are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CostsBy {
    Day,
    Model,
    Session,
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
    /// With `by`: by day, oldest first, each under its date in UTC; by model or session, the most expensive first, at most 500.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<NamedCost>>,
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
    let rows = match query.by {
        None => None,
        Some(CostsBy::Session) => Some(by_session(&app, &caller).await?),
        Some(by) => {
            let by = if by == CostsBy::Day { "day" } else { "model" }.to_owned();
            let request = ListCostsRequest { by, days: query.days.unwrap_or_default() };
            Some(named(app.backends.agent(&caller).list_costs(request).await?.into_inner().costs))
        }
    };
    Ok(Json(Costs {
        rows,
        session: query.session_id.and(answer.session).map(Cost::from),
        today: answer.today.unwrap_or_default().into(),
        by_provider: named(answer.by_provider),
        by_model: named(answer.by_model),
        session_budget: answer.session_budget_pico_usd.map(dollars),
        day_budget: answer.day_budget_pico_usd.map(dollars),
    }))
}

/// The caller's sessions by what they cost, the newest thousand of them.
async fn by_session(app: &App, caller: &Caller) -> Result<Vec<NamedCost>, Problem> {
    let mut agent = app.backends.agent(caller);
    let only = caller.session.as_deref().map(crate::events::ids::agent_session_id);
    let all = caller.scopes.contain(Scope::Operate);
    let mut request = ListSessionsRequest { page_size: SESSION_PAGE, all, ..ListSessionsRequest::default() };
    let mut rows = Vec::new();
    for _ in 0..SESSION_PAGES {
        let page = agent.list_sessions(request.clone()).await?.into_inner();
        let is_open = |id: &str| only.is_none_or(|only| only == id);
        let sessions = page.sessions.into_iter();
        let spent = sessions.filter(|session| session.cost_pico_usd > 0 && is_open(&session.id));
        rows.extend(spent.map(|session| (session.cost_pico_usd, session.id)));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    rows.sort_by(|a, b| b.cmp(a));
    let one = |(cost, id): (u64, String)| NamedCost {
        name: crate::events::ids::session_id(&id),
        cost: agent::Cost { cost_pico_usd: cost, ..agent::Cost::default() }.into(),
    };
    Ok(rows.into_iter().take(MAX_ROWS).map(one).collect())
}
