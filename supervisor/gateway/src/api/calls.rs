//! `GET /api/calls`, `GET /api/calls/{id}`: the latest calls, and one with what the guard did.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talon_proto::host::{self, GetCallRequest, ListCallsRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::require_operate;
use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::input::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct CallQuery {
    /// How many at most; up to 500. Without it, 100.
    limit: Option<u32>,
    /// Only calls of this plugin.
    plugin: Option<String>,
}

/// A call of a plugin's action.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RecentCall {
    /// As in the audit log and in events.
    id: String,
    plugin: String,
    action: String,
    /// person, model, program or system
    origin: String,
    /// For whom: a subject of the gateway, a sender of the agent, or `uid:N`.
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    /// The role of an extension that the action plays.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// running, ok, tool_error, refused, fault or cancelled
    outcome: String,
    /// A word for why it did not succeed; empty if it did.
    reason: String,
    /// In milliseconds since 1970.
    at: u64,
    /// In microseconds; until now if it runs.
    duration_us: u64,
    /// How often control syntax was neutralized in its answer.
    neutralized: u32,
}

impl From<host::RecentCall> for RecentCall {
    fn from(call: host::RecentCall) -> Self {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            id: call.id,
            plugin: call.plugin,
            action: call.action,
            origin: call.origin,
            subject: call.subject,
            session_id: some(call.session),
            trace_id: some(call.trace_id),
            role: some(call.role),
            outcome: if call.outcome == "host_fault" { "fault".to_owned() } else { call.outcome },
            reason: call.reason,
            at: call.unix_ms,
            duration_us: call.duration_us,
            neutralized: call.neutralised,
        }
    }
}

/// A call with what the guard did.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CallDetails {
    call: RecentCall,
    /// The guard's layers, the outermost first; empty while it runs.
    layers: Vec<Layer>,
    /// Whether the guard keeps the answer as it came (`guard.keep_raw_bytes`). What follows is absent otherwise.
    kept: bool,
    /// The arguments; absent if they were too long to be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
    /// The answer's text, neutralized.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// What the guard put into it, in order.
    spans: Vec<Span>,
    /// How many bytes of the answer are not there.
    left_out_bytes: u64,
}

/// A layer of the guard.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Layer {
    /// trace, taint, wrap, truncate, sanitize, rescue, validate, resolve, quarantine, deadline, breaker, admission or instance
    layer: String,
    /// pass, changed, deny, fault or skipped
    verdict: String,
    /// Its own time in microseconds; absent if nobody looked at calls then.
    #[serde(skip_serializing_if = "Option::is_none")]
    us: Option<f64>,
    /// Why, if it did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<host::GuardLayer> for Layer {
    fn from(layer: host::GuardLayer) -> Self {
        Self {
            layer: layer.layer,
            verdict: layer.verdict,
            // Microseconds of layers have decimals: most take less than one.
            us: layer.duration_ns.map(|time| f64::from(u32::try_from(time).unwrap_or(u32::MAX)) / 1000.0),
            reason: Some(layer.reason).filter(|reason| !reason.is_empty()),
        }
    }
}

/// A place in a text, in UTF-16 units as JavaScript counts them; from `start` to before `end`.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Span {
    start: usize,
    end: usize,
}

/// The latest calls, newest first, with those that run (scope operate). The latest 1,000 are there.
#[utoipa::path(get, path = "/api/calls", tag = "plugins", params(CallQuery), responses((status = OK, body = Page<RecentCall>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<CallQuery>,
) -> Result<Json<Page<RecentCall>>, Problem> {
    require_operate(&caller)?;
    let request =
        ListCallsRequest { limit: query.limit.unwrap_or_default(), plugin: query.plugin.unwrap_or_default() };
    let answer = app.backends.host(&caller).list_calls(request).await?.into_inner();
    Ok(Json(Page::new(answer.calls.into_iter().map(RecentCall::from), String::new())))
}

/// A call with the guard's layers, and with arguments and answer while the guard keeps the answer (scope admin). It is recorded in the
/// audit log.
#[utoipa::path(get, path = "/api/calls/{id}", tag = "plugins", params(("id" = String, Path)), responses((status = OK, body = CallDetails)))]
async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<CallDetails>, Problem> {
    caller.require(Scope::Admin)?;
    let answer = app.backends.host(&caller).get_call(GetCallRequest { id }).await?.into_inner();
    Ok(Json(CallDetails {
        spans: utf16_spans(&answer.content, &answer.spans),
        call: answer.call.unwrap_or_default().into(),
        layers: answer.layers.into_iter().map(Layer::from).collect(),
        kept: answer.kept,
        args: serde_json::from_str(&answer.arguments_json).ok(),
        answer: answer.kept.then_some(answer.content),
        left_out_bytes: answer.left_out_bytes,
    }))
}

/// Places in bytes as places in UTF-16 units. They are in order; what is no place of the text is left out.
fn utf16_spans(text: &str, spans: &[host::TextSpan]) -> Vec<Span> {
    let (mut bytes, mut units) = (0, 0);
    let mut advance = |to: u32| {
        let piece = text.get(bytes..usize::try_from(to).ok()?)?;
        units += piece.chars().map(char::len_utf16).sum::<usize>();
        bytes += piece.len();
        Some(units)
    };
    spans
        .iter()
        .filter_map(|span| Some(Span { start: advance(span.start)?, end: advance(span.end)? }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_a_page_counts_them() {
        let text = "ä😀<·think> x";
        let at = u32::try_from(text.find('·').unwrap()).unwrap();
        let span = |start, end| host::TextSpan { start, end };
        assert_eq!(utf16_spans(text, &[span(at, at + 2)]), [Span { start: 4, end: 5 }]);
        assert_eq!(
            utf16_spans(text, &[span(0, 2), span(2, 6)]),
            [Span { start: 0, end: 1 }, Span { start: 1, end: 3 }]
        );
        assert!(utf16_spans(text, &[span(1, 2)]).is_empty());
        assert!(utf16_spans(text, &[span(0, 9999)]).is_empty());
    }
}
