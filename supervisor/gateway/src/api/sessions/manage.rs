//! List, create, read, change, delete, cancel, compact, undo.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use talon_proto::agent::{
    CancelRequest, CompactSessionRequest, CreateSessionRequest, DeleteSessionRequest, GetSessionRequest,
    ListSessionsRequest, UndoTurnsRequest,
};
use utoipa::{IntoParams, ToSchema};

use super::view::Session;
use crate::access::{of_session, require_chat, session};
use crate::api::page::{Page, PageQuery};
use crate::app::App;
use crate::events::ThinkingLevel;
use crate::events::client_message::SessionChange;
use crate::identity::Caller;
use crate::input::{JsonBody, Path, Query};
use crate::problem::{Problem, ProblemKind};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct SessionQuery {
    /// Of one channel.
    channel: Option<String>,
    /// Of everybody (scope operate).
    #[serde(default)]
    all: bool,
    /// How many at most; up to 200. Without it, 50.
    limit: Option<u32>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The caller's sessions, the latest first.
#[utoipa::path(get, path = "/api/sessions", tag = "sessions", params(SessionQuery), responses((status = OK, body = Page<Session>)))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<SessionQuery>,
) -> Result<Json<Page<Session>>, Problem> {
    require_chat(&caller)?;
    if let Some(only) = caller.session.clone() {
        let request = GetSessionRequest {
            session_id: session(&caller, &only)?.to_owned(),
            page_size: 1,
            ..Default::default()
        };
        let answer = app.backends.agent(&caller).get_session(request).await.map_err(of_session)?.into_inner();
        return Ok(Json(Page::new(answer.session.map(Session::from), String::new())));
    }
    let request = ListSessionsRequest {
        all: query.all,
        channel: query.channel.unwrap_or_default(),
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    };
    let answer = app.backends.agent(&caller).list_sessions(request).await?.into_inner();
    Ok(Json(Page::new(answer.sessions.into_iter().map(Session::from), answer.next_page_token)))
}

/// A new session's settings.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewSession {
    /// provider/name or alias; without it, as configured.
    #[serde(default)]
    model: String,
    #[serde(default)]
    thinking_level: ThinkingLevel,
    /// Whether channels show arguments and results of calls.
    #[serde(default)]
    verbose_level: bool,
    /// What to note about it; at most 32 entries.
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// Makes a session.
#[utoipa::path(
    post, path = "/api/sessions", tag = "sessions", request_body = NewSession,
    responses((status = CREATED, body = Session))
)]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody(wish): JsonBody<NewSession>,
) -> Result<(StatusCode, Json<Session>), Problem> {
    require_chat(&caller)?;
    if caller.session.is_some() {
        let detail = "this credential is for one session: use another to make one (`talon token create`)";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    let request = CreateSessionRequest {
        channel: caller.channel.to_string(),
        model: wish.model,
        thinking: wish.thinking_level.word(),
        verbose: wish.verbose_level,
        metadata: wish.labels.into_iter().collect(),
        ..CreateSessionRequest::default()
    };
    let made = app.backends.agent(&caller).create_session(request).await?.into_inner();
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// A session, and a page of its messages.
#[utoipa::path(
    get, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path), PageQuery),
    responses((status = OK, body = Session))
)]
pub(super) async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Session>, Problem> {
    let request = GetSessionRequest {
        session_id: session(&caller, &id)?.to_owned(),
        all: false,
        page_size: query.size(),
        page_token: query.token(),
    };
    let answer = app.backends.agent(&caller).get_session(request).await.map_err(of_session)?.into_inner();
    Ok(Json(Session::with_messages(answer)))
}

/// Changes a session's settings.
#[utoipa::path(
    patch, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)), request_body = SessionChange,
    responses((status = OK, body = Session))
)]
pub(super) async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(change): JsonBody<SessionChange>,
) -> Result<Json<Session>, Problem> {
    let request = change.of(session(&caller, &id)?);
    let changed = app.backends.agent(&caller).update_session(request).await.map_err(of_session)?.into_inner();
    Ok(Json(changed.into()))
}

/// Deletes a session, with all that it holds.
#[utoipa::path(delete, path = "/api/sessions/{id}", tag = "sessions", params(("id" = String, Path)), responses((status = NO_CONTENT)))]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let session_id = session(&caller, &id)?.to_owned();
    app.backends
        .agent(&caller)
        .delete_session(DeleteSessionRequest { session_id })
        .await
        .map_err(of_session)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a turn was ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cancelled {
    /// False if there was no turn.
    cancelled: bool,
}

/// Ends the turn that a session is in. What it has done stays.
#[utoipa::path(
    post, path = "/api/sessions/{id}/cancel", tag = "sessions", params(("id" = String, Path)),
    responses((status = OK, body = Cancelled))
)]
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Cancelled>, Problem> {
    let session_id = session(&caller, &id)?.to_owned();
    let answer =
        app.backends.agent(&caller).cancel(CancelRequest { session_id }).await.map_err(of_session)?;
    Ok(Json(Cancelled { cancelled: answer.into_inner().cancelled }))
}

/// What was compacted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compacted {
    /// Messages that the summary stands for.
    messages: u64,
    tokens_before: u64,
    tokens_after: u64,
    summary: String,
}

/// How much is compacted.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CompactWish {
    /// Turns that stay as they were; without it, as configured.
    #[serde(default)]
    keep_turns: u32,
}

/// Puts a summary in the place of the older turns. They stay in the store.
#[utoipa::path(
    post, path = "/api/sessions/{id}/compact", tag = "sessions", params(("id" = String, Path)),
    request_body = CompactWish, responses((status = OK, body = Compacted))
)]
pub(super) async fn compact(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(wish): JsonBody<CompactWish>,
) -> Result<Json<Compacted>, Problem> {
    let session_id = session(&caller, &id)?.to_owned();
    let request = CompactSessionRequest { session_id, keep_turns: wish.keep_turns };
    let answer = app.backends.agent(&caller).compact_session(request).await.map_err(of_session)?.into_inner();
    Ok(Json(Compacted {
        messages: answer.messages,
        tokens_before: answer.tokens_before,
        tokens_after: answer.tokens_after,
        summary: answer.summary,
    }))
}

/// How much is taken back.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UndoWish {
    /// Turns, the latest ones; without it, one.
    #[serde(default)]
    turns: u32,
}

/// What was taken back.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UndoneTurns {
    /// Turns that were taken back.
    turns: u32,
    /// The message that began the first of them.
    text: String,
    /// Calls that were made in them, and stay made.
    calls: u32,
}

/// Takes back the latest turns. Calls that were made in them stay made.
#[utoipa::path(
    post, path = "/api/sessions/{id}/undo", tag = "sessions", params(("id" = String, Path)),
    request_body = UndoWish, responses((status = OK, body = UndoneTurns))
)]
pub(super) async fn undo(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(wish): JsonBody<UndoWish>,
) -> Result<Json<UndoneTurns>, Problem> {
    let session_id = session(&caller, &id)?.to_owned();
    let request = UndoTurnsRequest { session_id, turns: wish.turns };
    let answer = app.backends.agent(&caller).undo_turns(request).await.map_err(of_session)?.into_inner();
    Ok(Json(UndoneTurns { turns: answer.turns, text: answer.text, calls: answer.calls }))
}
