//! `GET /api/audit`, `GET /api/audit/verify`: the audit log (scope admin).

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::host::{AuditRecord, SearchAuditRequest, VerifyAuditRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::input::Query;
use crate::problem::{Problem, ProblemKind};

/// The longest text to search for, in bytes; the supervisor takes no longer one.
const MAX_SEARCH_BYTES: usize = 200;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search)).routes(routes!(verify))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// Records that have all of these words, in any case; at most 200 bytes.
    q: Option<String>,
    /// How many at most; up to 500. Without it, 100.
    limit: Option<u32>,
    /// `nextCursor` of the page before; without it, the newest records.
    cursor: Option<String>,
}

/// A record of the audit log.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditEntry {
    /// Counts up by one.
    sequence: u64,
    /// In milliseconds since 1970.
    at: u64,
    /// call, operation, or what the log says of itself: started, stopped, lost, …
    kind: String,
    /// `plugin.action` of a call, or the operation's verb; empty otherwise.
    event: String,
    /// What an operation was about; empty if nothing in particular.
    target: String,
    /// Who caused it: a subject of the gateway, a sender of the agent, or `uid:N`; empty if the supervisor acted by itself.
    subject: String,
    /// ok, done, refused, failed, …; empty if there is none.
    outcome: String,
    /// The record as it is in the log.
    record: Value,
}

impl From<AuditRecord> for AuditEntry {
    fn from(record: AuditRecord) -> Self {
        // A line that is none is shown as text: the log may have been changed from outside.
        let line: Value = serde_json::from_str(&record.json).unwrap_or(Value::String(record.json));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let who = &line["who"];
        let subject =
            [&line["sender"], &who["subject"]].into_iter().find_map(Value::as_str).map(str::to_owned);
        let subject = subject.or_else(|| Some(format!("uid:{}", who["uid"].as_u64()?)));
        let event = match line["plugin"].as_str() {
            Some(plugin) => format!("{plugin}.{}", text(&line["action"])),
            None => text(&line["verb"]),
        };
        Self {
            sequence: record.sequence,
            at: line["unix_ms"].as_u64().unwrap_or_default(),
            kind: text(&line["kind"]),
            event,
            target: text(&line["subject"]),
            subject: subject.unwrap_or_default(),
            outcome: text(&line["outcome"]),
            record: line,
        }
    }
}

/// Records of the audit log, newest first (scope admin).
#[utoipa::path(get, path = "/api/audit", tag = "operation", params(AuditQuery), responses((status = OK, body = Page<AuditEntry>)))]
async fn search(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditEntry>>, Problem> {
    caller.require(Scope::Admin)?;
    let wrong =
        |field: &str, detail: String| Problem::new(ProblemKind::BadRequest, detail).with_fields([field]);
    let text = query.q.unwrap_or_default();
    if text.len() > MAX_SEARCH_BYTES {
        return Err(wrong("q", format!("q has more than {MAX_SEARCH_BYTES} bytes: search for less")));
    }
    let before = match &query.cursor {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .map_err(|_| wrong("cursor", "cursor is none: take nextCursor of the page before".to_owned()))?,
    };
    let request = SearchAuditRequest { text, before, limit: query.limit.unwrap_or_default() };
    let found = app.backends.host(&caller).search_audit(request).await?.into_inner();
    let next = if found.next_before == 0 { String::new() } else { found.next_before.to_string() };
    Ok(Json(Page::new(found.records.into_iter().map(AuditEntry::from), next)))
}

/// Whether the audit log is whole.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditVerdict {
    /// Every record is unchanged and follows the one before it.
    ok: bool,
    /// Records that were read.
    records: u64,
    files: u32,
    /// Records that the log itself says are missing, because they could not be written in time.
    lost: u64,
    /// Where it is broken and how, or further findings; empty if there are none.
    message: String,
    /// The number and hash of the last record, to be noted elsewhere; absent if it is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
}

/// Verifies the chain of the whole audit log (scope admin). A large one takes seconds.
#[utoipa::path(get, path = "/api/audit/verify", tag = "operation", responses((status = OK, body = AuditVerdict)))]
async fn verify(State(app): State<App>, caller: Caller) -> Result<Json<AuditVerdict>, Problem> {
    caller.require(Scope::Admin)?;
    let answer = app.backends.host(&caller).verify_audit(VerifyAuditRequest {}).await?.into_inner();
    Ok(Json(AuditVerdict {
        ok: answer.whole,
        records: answer.records,
        files: answer.files,
        lost: answer.lost,
        message: answer.notes.join(" · "),
        head: answer.whole.then(|| format!("{}:{}", answer.head, answer.head_hash)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> AuditEntry {
        AuditRecord { sequence: 7, json: json.to_owned() }.into()
    }

    #[test]
    fn a_record_is_read_as_what_it_says_and_anything_else_is_shown() {
        let call = entry(
            r#"{"seq":7,"unix_ms":5,"kind":"call","who":{"uid":3,"subject":"gw:a/b"},"plugin":"p","action":"x","outcome":"ok"}"#,
        );
        assert_eq!(
            (call.at, call.event.as_str(), call.subject.as_str(), call.outcome.as_str()),
            (5, "p.x", "gw:a/b", "ok")
        );
        let stop = entry(
            r#"{"seq":7,"kind":"operation","who":{"uid":3},"verb":"stop","subject":"p","outcome":"done"}"#,
        );
        assert_eq!(
            (stop.event.as_str(), stop.target.as_str(), stop.subject.as_str()),
            ("stop", "p", "uid:3")
        );
        let none = entry("{broken");
        assert_eq!((none.event.as_str(), none.record.as_str()), ("", Some("{broken")));
    }
}
