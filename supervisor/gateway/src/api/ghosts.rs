//! What the shadow loop proposes: `GET /api/ghosts`, `GET` and `POST /api/ghosts/{id}`, `GET /api/shadow/stats`, `GET /api/shadow/log`,
//! `POST /api/shadow/pause`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use talon_proto::agent::{
    self, DecideGhostRequest, GetGhostRequest, GetShadowStatsRequest, ListGhostsRequest,
    ListShadowLogRequest, PauseShadowRequest,
};
use tonic::{Code, Status};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::require_chat;
use crate::app::App;
use crate::events::session::ShadowGhost;
use crate::events::translate::dollars;
use crate::identity::Caller;
use crate::input::{JsonBody, Path, Query};
use crate::problem::{Problem, ProblemKind};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, decide))
        .routes(routes!(stats))
        .routes(routes!(log))
        .routes(routes!(pause))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct GhostQuery {
    /// waiting, approved, dismissed, snoozed or expired
    state: Option<String>,
    /// Of everybody (scope operate).
    #[serde(default)]
    everybody: bool,
    /// How many at most.
    limit: Option<u32>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct LogQuery {
    /// Of everybody (scope operate).
    #[serde(default)]
    everybody: bool,
    /// How many at most.
    limit: Option<u32>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct StatsQuery {
    /// Of this sender (scope operate); without it, of the caller.
    sender: Option<String>,
}

/// Why a ghost is there.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GhostReasons {
    ghost: ShadowGhost,
    /// What was found, in the words of the detector.
    finding: String,
    /// Which rules of the policy it passed.
    passed: Vec<String>,
    /// What was sent for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<ShadowLogEntry>,
}

/// One question of the loop to a model.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShadowLogEntry {
    id: String,
    sender_id: String,
    /// In milliseconds since 1970.
    at: u64,
    trigger: String,
    /// ghost, nothing, failed or asking
    outcome: String,
    /// As provider/name.
    models: Vec<String>,
    /// All of them are on this machine.
    local: bool,
    /// How many bytes were sent, by their kind.
    sent: BTreeMap<String, u64>,
    redactions: u32,
    tokens: u64,
    /// In US dollars.
    cost: f64,
    ghost_id: String,
    note: String,
}

impl From<agent::ShadowLogEntry> for ShadowLogEntry {
    fn from(entry: agent::ShadowLogEntry) -> Self {
        Self {
            id: entry.id,
            sender_id: entry.sender,
            at: entry.unix_ms,
            trigger: entry.trigger,
            outcome: entry.outcome,
            models: entry.models,
            local: entry.local,
            sent: entry.sent.into_iter().map(|part| (part.kind, part.bytes)).collect(),
            redactions: entry.redactions,
            tokens: entry.input_tokens + entry.output_tokens,
            cost: dollars(entry.cost_pico_usd),
            ghost_id: entry.ghost_id,
            note: entry.note,
        }
    }
}

/// A person's decision about a ghost.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GhostDecision {
    /// approve, dismiss, snooze or custom
    decision: String,
    /// With custom: the label of the action.
    #[serde(default)]
    label: String,
    /// With snooze: for how long, in milliseconds. 0: an hour.
    #[serde(default)]
    snooze_for: u64,
}

/// How the loop of a person is, and what its triggers led to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShadowStats {
    enabled: bool,
    paused: bool,
    /// In milliseconds since 1970; absent: until it is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_until: Option<u64>,
    muted_repositories: Vec<String>,
    /// Only models on this machine are asked.
    local_only: bool,
    /// Which one is asked; empty: the cheapest one.
    model: String,
    /// Local times within which no ghost is made: `22:00-07:00`.
    quiet_hours: String,
    /// Why no ghost can be made at all, with what to do; empty otherwise.
    problem: String,
    ghosts_last_hour: u32,
    max_ghosts_per_hour: u32,
    /// In milliseconds.
    cooldown: u64,
    tokens_today: u64,
    /// Absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    day_budget_tokens: Option<u64>,
    /// In US dollars.
    cost_today: f64,
    /// In US dollars; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    day_budget: Option<f64>,
    /// What watchers dropped since the agent started.
    dropped_by_watchers: u64,
    /// When the person's watcher was heard last, in milliseconds since 1970; absent: not since the agent started.
    #[serde(skip_serializing_if = "Option::is_none")]
    watcher_seen: Option<u64>,
    /// What it cannot watch, each with what to do.
    watcher_limits: Vec<String>,
    triggers: Vec<TriggerStats>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TriggerStats {
    trigger: String,
    observations: u64,
    asked: u64,
    ghosts: u64,
    approved: u64,
    dismissed: u64,
    expired: u64,
    /// Which share of its observations is let through: dismissals lower it, approvals raise it.
    rate_percent: u32,
    /// How many were held back, by the rule that did.
    held_back: BTreeMap<String, u64>,
}

/// Has the loop of the caller rest, or go on.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShadowPause {
    paused: bool,
    /// For how long, in milliseconds. 0: until it is resumed.
    #[serde(default)]
    pause_for: u64,
    /// Only in this repository, by its absolute path.
    #[serde(default)]
    repository: String,
}

/// Whether the loop rests.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShadowRest {
    paused: bool,
    muted_repositories: Vec<String>,
}

fn of_ghost(status: Status) -> Problem {
    match status.code() {
        Code::NotFound => {
            Problem::new(ProblemKind::NotFound, "there is no such ghost: GET /api/ghosts lists yours")
        }
        _ => status.into(),
    }
}

/// Ghosts are a person's: a credential that is for one session has none.
fn require_person(caller: &Caller) -> Result<(), Problem> {
    require_chat(caller)?;
    match caller.session {
        None => Ok(()),
        Some(_) => {
            let detail = "this credential is for one session, and ghosts belong to none";
            Err(Problem::new(ProblemKind::Forbidden, detail))
        }
    }
}

/// What the shadow loop proposes, or did; the latest first.
#[utoipa::path(get, path = "/api/ghosts", tag = "shadow", params(GhostQuery), responses((status = OK, body = Page<ShadowGhost>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<GhostQuery>,
) -> Result<Json<Page<ShadowGhost>>, Problem> {
    require_person(&caller)?;
    let request = ListGhostsRequest {
        state: query.state.unwrap_or_default(),
        everybody: query.everybody,
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    };
    let answer = app.backends.agent(&caller).list_ghosts(request).await?.into_inner();
    Ok(Json(Page::new(answer.ghosts.into_iter().map(ShadowGhost::from), answer.next_page_token)))
}

/// One ghost, and why it is there.
#[utoipa::path(
    get, path = "/api/ghosts/{id}", tag = "shadow", params(("id" = String, Path)),
    responses((status = OK, body = GhostReasons))
)]
async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<GhostReasons>, Problem> {
    require_person(&caller)?;
    let request = GetGhostRequest { id };
    let found = app.backends.agent(&caller).get_ghost(request).await.map_err(of_ghost)?.into_inner();
    Ok(Json(GhostReasons {
        ghost: found.ghost.unwrap_or_default().into(),
        finding: found.source.map(|source| source.finding).unwrap_or_default(),
        passed: found.passed,
        sent: found.sent.map(ShadowLogEntry::from),
    }))
}

/// Decides about a ghost: for people, with the scope approve. Approving begins a turn in a session of its own.
#[utoipa::path(
    post, path = "/api/ghosts/{id}", tag = "shadow", params(("id" = String, Path)), request_body = GhostDecision,
    responses((status = OK, body = ShadowGhost))
)]
async fn decide(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(decision): JsonBody<GhostDecision>,
) -> Result<Json<ShadowGhost>, Problem> {
    require_person(&caller)?;
    let GhostDecision { decision, label, snooze_for } = decision;
    let request = DecideGhostRequest { id, decision, label, snooze_ms: snooze_for };
    let decided = app.backends.agent_as_person(&caller)?.decide_ghost(request).await.map_err(of_ghost)?;
    Ok(Json(decided.into_inner().into()))
}

/// What the triggers of a person led to, and what of the limits is left.
#[utoipa::path(get, path = "/api/shadow/stats", tag = "shadow", params(StatsQuery), responses((status = OK, body = ShadowStats)))]
async fn stats(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<StatsQuery>,
) -> Result<Json<ShadowStats>, Problem> {
    require_person(&caller)?;
    let request = GetShadowStatsRequest { sender: query.sender.unwrap_or_default() };
    let found = app.backends.agent(&caller).get_shadow_stats(request).await?.into_inner();
    let state = found.state.unwrap_or_default();
    let triggers = found.triggers.into_iter().map(|one| TriggerStats {
        trigger: one.trigger,
        observations: one.observations,
        asked: one.asked,
        ghosts: one.ghosts,
        approved: one.approved,
        dismissed: one.dismissed,
        expired: one.expired,
        rate_percent: one.rate_percent,
        held_back: one.held_back,
    });
    Ok(Json(ShadowStats {
        enabled: state.enabled,
        paused: state.paused,
        paused_until: state.paused_until_unix_ms,
        muted_repositories: state.muted_repositories,
        local_only: state.local_only,
        model: state.model,
        quiet_hours: state.quiet_hours,
        problem: state.problem,
        ghosts_last_hour: found.ghosts_last_hour,
        max_ghosts_per_hour: found.max_ghosts_per_hour,
        cooldown: found.cooldown_ms,
        tokens_today: found.tokens_today,
        day_budget_tokens: found.day_budget_tokens,
        cost_today: dollars(found.cost_today_pico_usd),
        day_budget: found.day_budget_pico_usd.map(dollars),
        dropped_by_watchers: found.dropped_by_watchers,
        watcher_seen: found.watcher_seen_unix_ms,
        watcher_limits: found.watcher_limits,
        triggers: triggers.collect(),
    }))
}

/// What left for a model, by kind and number of bytes; the latest first.
#[utoipa::path(get, path = "/api/shadow/log", tag = "shadow", params(LogQuery), responses((status = OK, body = Page<ShadowLogEntry>)))]
async fn log(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<LogQuery>,
) -> Result<Json<Page<ShadowLogEntry>>, Problem> {
    require_person(&caller)?;
    let request = ListShadowLogRequest {
        everybody: query.everybody,
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    };
    let answer = app.backends.agent(&caller).list_shadow_log(request).await?.into_inner();
    Ok(Json(Page::new(answer.entries.into_iter().map(ShadowLogEntry::from), answer.next_page_token)))
}

/// Has the loop of the caller rest, or go on: for people, with the scope approve.
#[utoipa::path(post, path = "/api/shadow/pause", tag = "shadow", request_body = ShadowPause, responses((status = OK, body = ShadowRest)))]
async fn pause(
    State(app): State<App>,
    caller: Caller,
    JsonBody(pause): JsonBody<ShadowPause>,
) -> Result<Json<ShadowRest>, Problem> {
    require_person(&caller)?;
    let ShadowPause { paused, pause_for, repository } = pause;
    let request = PauseShadowRequest { paused, for_ms: pause_for, repository };
    let state = app.backends.agent_as_person(&caller)?.pause_shadow(request).await?.into_inner();
    Ok(Json(ShadowRest { paused: state.paused, muted_repositories: state.muted_repositories }))
}
