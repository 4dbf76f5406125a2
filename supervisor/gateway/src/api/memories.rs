//! `GET /api/memories`, `GET` and `DELETE /api/memories/{id}`.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use talon_proto::agent::forget_memories_request::Kind;
use talon_proto::agent::{self, ForgetMemoriesRequest, GetMemoryRequest, ListMemoriesRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::input::{Path, Query};
use crate::problem::{Problem, ProblemKind};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, forget))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct MemoryQuery {
    /// Words that are in it.
    text: Option<String>,
    /// A tag that it has.
    tag: Option<String>,
    /// How many at most.
    limit: Option<u32>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// Something that the agent remembers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Memory {
    id: String,
    content: String,
    tags: Vec<String>,
    source: String,
    /// In milliseconds since 1970.
    created_at: u64,
    last_used_at: u64,
    /// How often it was recorded.
    count: u64,
}

impl From<agent::Memory> for Memory {
    fn from(memory: agent::Memory) -> Self {
        Self {
            id: memory.id,
            content: memory.content,
            tags: memory.tags,
            source: memory.source,
            created_at: memory.created_unix_ms,
            last_used_at: memory.last_used_unix_ms,
            count: memory.count,
        }
    }
}

/// A caller for one session sees nothing that goes beyond it.
fn require_memories(caller: &Caller) -> Result<(), Problem> {
    require_chat(caller)?;
    if caller.session.is_some() {
        let detail =
            "this credential is for one session, and memories are of all: use another (`talon token create`)";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    Ok(())
}

/// What the agent remembers for the caller.
#[utoipa::path(get, path = "/api/memories", tag = "agent", params(MemoryQuery), responses((status = OK, body = Page<Memory>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> Result<Json<Page<Memory>>, Problem> {
    require_memories(&caller)?;
    let request = ListMemoriesRequest {
        text: query.text.unwrap_or_default(),
        tags: query.tag.into_iter().collect(),
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    };
    let answer = app.backends.agent(&caller).list_memories(request).await?.into_inner();
    Ok(Json(Page::new(answer.memories.into_iter().map(Memory::from), answer.next_page_token)))
}

/// One memory.
#[utoipa::path(get, path = "/api/memories/{id}", tag = "agent", params(("id" = String, Path)), responses((status = OK, body = Memory)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Memory>, Problem> {
    require_memories(&caller)?;
    let answer = app.backends.agent(&caller).get_memory(GetMemoryRequest { id }).await?.into_inner();
    Ok(Json(answer.into()))
}

/// Forgets one memory.
#[utoipa::path(delete, path = "/api/memories/{id}", tag = "agent", params(("id" = String, Path)), responses((status = NO_CONTENT)))]
async fn forget(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    require_memories(&caller)?;
    let request = ForgetMemoriesRequest { kind: Some(Kind::Id(id)) };
    let forgotten = app.backends.agent(&caller).forget_memories(request).await?.into_inner().forgotten;
    if forgotten == 0 {
        return Err(Problem::new(
            ProblemKind::NotFound,
            "there is no such memory: GET /api/memories lists them",
        ));
    }
    Ok(StatusCode::NO_CONTENT)
}
