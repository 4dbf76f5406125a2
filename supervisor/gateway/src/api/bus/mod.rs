//! `GET /api/bus`: what the event bus of the agent carries.
//!
//! | module | contents |
//! |---|---|
//! | `event` | the closed list of events, and what stands around each |
//! | `payload` | the payloads |

mod event;
mod payload;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use talon_proto::agent::WatchBusRequest;
use talon_proto::agent::watch_bus_response::Item;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::event::{BusEnvelope, BusEvent, MissedEvents};
use crate::access::require_chat;
use crate::app::App;
use crate::clock::unix_ms;
use crate::identity::{Caller, Scope};
use crate::input::Query;
use crate::problem::{Problem, ProblemKind};
use crate::sse;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(watch))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct BusQuery {
    /// Which kinds, with commas between: tool.complete, or tool.* for all of a family. Without it, all.
    #[serde(rename = "type")]
    kinds: Option<String>,
    /// Only what belongs to the caller, also for who may see everybody's.
    #[serde(default)]
    mine: bool,
}

/// What happens now, as server-sent events: everybody's with the scope operate, and otherwise the caller's own. Nothing of it is kept: who
/// reads slowly is told how many events are missing (missed), and no emitter waits. `/api/events` tells of sessions without a gap.
#[utoipa::path(
    get, path = "/api/bus", tag = "operation", params(BusQuery),
    responses((status = OK, body = BusEnvelope, content_type = "text/event-stream"))
)]
async fn watch(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<BusQuery>,
) -> Result<Response, Problem> {
    let may_see_all = caller.scopes.contain(Scope::Operate);
    if !may_see_all {
        require_chat(&caller)?;
    }
    if caller.session.is_some() || (caller.scopes.contain(Scope::Channel) && !may_see_all) {
        let detail = "a credential for one session, or for a channel, watches no event bus: GET /api/sessions/{id}/events has a session's events";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    let words = query.kinds.iter().flat_map(|kinds| kinds.split(',')).map(str::trim);
    let kinds = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let request = WatchBusRequest { kinds, everybody: may_see_all && !query.mine };
    let items = app.backends.agent(&caller).watch_bus(request).await?.into_inner();
    let events = stream::unfold(items, |mut items| async move {
        // The agent ends, or the caller did: the client connects anew, and knows that something is missing.
        let item = items.message().await.ok()??.item;
        let envelope = match item {
            Some(Item::Event(event)) => BusEnvelope::of(event),
            Some(Item::Missed(count)) => {
                Some(BusEnvelope::now(BusEvent::Missed(MissedEvents { count }), unix_ms()))
            }
            None => None,
        };
        Some((envelope.map(|envelope| (envelope.type_name(), envelope.to_json())), items))
    });
    Ok(sse::named(&app, &caller, events).into_response())
}
