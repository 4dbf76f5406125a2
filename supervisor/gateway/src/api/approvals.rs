//! `GET /api/approvals`, `POST /api/approvals/{id}`.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_proto::agent::{self, DecideRequest, ListApprovalsRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::{self, of_session};
use crate::app::App;
use crate::events::ids::session_id;
use crate::identity::{Caller, Scope};
use crate::input::{JsonBody, Path, Query};
use crate::problem::{Problem, ProblemKind};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(decide))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct ApprovalQuery {
    /// Of one session.
    session_id: Option<String>,
    /// Also those that wait no more.
    #[serde(default)]
    all: bool,
    /// Of everybody (scope operate).
    #[serde(default)]
    everybody: bool,
}

/// Something that waits for a person: a call, a plan, or a question.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Approval {
    id: String,
    session_id: String,
    sender_id: String,
    /// The call that waits, as plugin.action; empty for a plan, and for a question of the model.
    tool: String,
    /// Exactly what the plugin gets.
    args: Value,
    why: String,
    /// pending, approved, answered, denied, expired or cancelled
    state: String,
    /// In milliseconds since 1970.
    asked_at: u64,
    expires_at: u64,
    /// Goes back with the decision.
    digest: String,
    /// The question; empty if it is none.
    question: String,
    options: Vec<String>,
    /// The JSON Schema of the answer, if it is to be one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
    decided_by: String,
}

impl From<agent::Approval> for Approval {
    fn from(approval: agent::Approval) -> Self {
        let args = approval.args.into_iter().map(|(name, value)| (name, Value::String(value)));
        let is_call = !approval.plugin.is_empty();
        Self {
            id: approval.id,
            session_id: session_id(&approval.session_id),
            sender_id: approval.sender,
            tool: if is_call { format!("{}.{}", approval.plugin, approval.action) } else { String::new() },
            args: Value::Object(args.collect::<Map<_, _>>()),
            why: approval.why,
            state: approval.state,
            asked_at: approval.asked_unix_ms,
            expires_at: approval.expires_unix_ms,
            digest: approval.digest,
            question: approval.question,
            options: approval.choices,
            schema: serde_json::from_str(&approval.form).ok(),
            decided_by: approval.decided_by,
        }
    }
}

/// A person's decision.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Decision {
    /// Whether it may run; of a question, whether it is answered.
    pub allow: bool,
    /// What was seen: needed to allow a call.
    #[serde(default)]
    pub digest: String,
    /// With a denial: told to the model. At most 500 bytes.
    #[serde(default)]
    pub reason: String,
    /// The answer to a question. At most 16 KiB.
    #[serde(default)]
    pub answer: String,
    /// To allow a plan: the revision that was seen.
    #[serde(default)]
    pub plan_revision: u64,
    /// once, session or always; without it, once.
    #[serde(default)]
    pub scope: String,
}

/// What waits for a person, or did.
#[utoipa::path(get, path = "/api/approvals", tag = "approvals", params(ApprovalQuery), responses((status = OK, body = Page<Approval>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ApprovalQuery>,
) -> Result<Json<Page<Approval>>, Problem> {
    if !caller.scopes.contain(Scope::Approve) {
        access::require_chat(&caller)?;
    }
    let wanted = query.session_id.as_deref().or(caller.session.as_deref());
    let request = ListApprovalsRequest {
        all: query.all,
        session_id: wanted.map(crate::events::ids::agent_session_id).unwrap_or_default().to_owned(),
        everybody: query.everybody,
    };
    let only = caller.session.as_deref().map(crate::events::ids::agent_session_id);
    let answer = app.backends.agent(&caller).list_approvals(request).await.map_err(of_session)?.into_inner();
    let seen =
        answer.approvals.into_iter().filter(|approval| only.is_none_or(|only| approval.session_id == only));
    Ok(Json(Page::new(seen.map(Approval::from), String::new())))
}

/// Decides: for people, with the scope approve.
#[utoipa::path(
    post, path = "/api/approvals/{id}", tag = "approvals", params(("id" = String, Path)), request_body = Decision,
    responses((status = OK, body = Approval))
)]
async fn decide(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    JsonBody(decision): JsonBody<Decision>,
) -> Result<Json<Approval>, Problem> {
    Ok(Json(decide_as(&app, &caller, id, decision).await?.into()))
}

/// Decides for this caller.
///
/// # Errors
/// Without the scope `approve`; for another session than the one of its credential; without what was seen.
pub(crate) async fn decide_as(
    app: &App,
    caller: &Caller,
    id: String,
    decision: Decision,
) -> Result<agent::Approval, Problem> {
    let mut agent = app.backends.agent_as_person(caller)?;
    let gone = || {
        Problem::new(
            ProblemKind::NotFound,
            "nothing of this id waits for you: GET /api/approvals lists what does",
        )
    };
    if let Some(only) = caller.session.as_deref() {
        let session_id = crate::events::ids::agent_session_id(only).to_owned();
        let request = ListApprovalsRequest { session_id, ..ListApprovalsRequest::default() };
        let waiting = agent.list_approvals(request).await.map_err(of_session)?.into_inner().approvals;
        if !waiting.iter().any(|approval| approval.id == id) {
            return Err(gone());
        }
    }
    let names_what_was_seen = !decision.digest.is_empty() || decision.plan_revision > 0;
    if decision.allow && !names_what_was_seen && decision.answer.is_empty() {
        let detail = "to allow a call, send the digest of what was seen (of a plan its planRevision); to answer a question, the answer";
        return Err(Problem::new(ProblemKind::Unprocessable, detail).with_fields(["digest"]));
    }
    let request = DecideRequest {
        id,
        approve: decision.allow,
        digest: decision.digest,
        reason: decision.reason,
        answer: decision.answer,
        scope: decision.scope,
        plan_revision: decision.plan_revision,
        ..DecideRequest::default()
    };
    match agent.decide(request).await {
        Ok(approval) => Ok(approval.into_inner()),
        Err(status) if status.code() == tonic::Code::NotFound => Err(gone()),
        Err(status) => Err(status.into()),
    }
}
