//! `GET /api/events`, `GET /api/sessions/{id}/events`: events of sessions, from where `Last-Event-ID` says.

use std::convert::Infallible;
use std::future::ready;

use axum::extract::State;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName};
use talon_event_bus::Subscription;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::stream::{sent, serve};
use crate::access::{require_chat, session};
use crate::app::App;
use crate::config_updates;
use crate::events::Envelope;
use crate::events::ids::session_id;
use crate::events::session_envelopes::envelopes;
use crate::ghosts::{self, GhostFeed};
use crate::identity::Caller;
use crate::input::Path;
use crate::problem::{Problem, ProblemKind};
use crate::session_events::SessionEvents;
use crate::task_updates;

/// What a browser sends when it connects anew: the last id that it saw.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The most sessions whose cursors an event's id holds: as a header it has some 2 KiB then. Of more, those with the earliest ids are left
/// out: `/api/sessions/{id}/events` follows each by itself.
const MAX_SESSIONS_IN_ID: usize = 64;
/// What stands before the time in an id. No session's id is it.
const SINCE: &str = "since";

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(all)).routes(routes!(one))
}

/// The events that a WebSocket of the caller gets, from now on, or those of sessions from where `Last-Event-ID` says. Each is an envelope.
#[utoipa::path(
    get, path = "/api/events", tag = "sessions",
    responses((status = OK, body = Envelope, content_type = "text/event-stream"))
)]
async fn all(State(app): State<App>, caller: Caller, headers: HeaderMap) -> Result<Response, Problem> {
    require_chat(&caller)?;
    let mut events = SessionEvents::of_caller(app.clone(), caller.clone());
    if let Some(ResumePoint { since, cursors }) = last_seen(&headers)? {
        // An id has fewer cursors than there are places.
        let cursors = cursors.iter().map(|(session, after)| (session.as_str(), *after));
        let _unplaced = events.resume(cursors, since);
    }
    let ghosts = GhostFeed::of_caller(app.clone(), caller.clone());
    let (tasks, config) = (app.task_updates.subscribe(&caller), app.config_updates.subscribe(&caller));
    Ok(follow(&app, &caller, events, ghosts, tasks, config))
}

/// The events of one session, from its beginning, or from where `Last-Event-ID` says.
#[utoipa::path(
    get, path = "/api/sessions/{id}/events", tag = "sessions", params(("id" = String, Path)),
    responses((status = OK, body = Envelope, content_type = "text/event-stream"))
)]
async fn one(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = session(&caller, &id)?.to_owned();
    let seen = last_seen(&headers)?;
    let outside = session_id(&id);
    let mut cursors = seen.map(|seen| seen.cursors).unwrap_or_default().into_iter();
    let after = cursors.find(|(session, _)| *session == outside).map_or(0, |(_, after)| after);
    let events = SessionEvents::of_session(app.clone(), caller.clone(), &id, after);
    Ok(follow(&app, &caller, events, None, None, None))
}

fn follow(
    app: &App,
    caller: &Caller,
    events: SessionEvents,
    ghosts: Option<GhostFeed>,
    tasks: Option<Subscription>,
    config: Option<Subscription>,
) -> Response {
    let events = stream::unfold(events, |mut events| async move {
        let event = events.next().await.ok()?;
        let id = id_of(events.since(), events.cursors());
        let recorded = event.sequence > 0;
        let envelopes = envelopes(event);
        let last = envelopes.len();
        // An event that is not recorded changes no cursor, so it has no id; of several it is seen with the last one.
        let has_id = |place: usize| recorded && place == last;
        let told = (1..)
            .zip(&envelopes)
            .map(|(place, envelope)| Ok(if has_id(place) { sent(envelope).id(&id) } else { sent(envelope) }));
        let error = events.take_error().map(|error| Ok(sent(&error)));
        let written: Vec<Result<Event, Infallible>> = told.chain(error).collect();
        Some((stream::iter(written), events))
    });
    // They are beside the sessions: no cursor of an id is theirs.
    let beside = stream::select(ghosts::events(ghosts), task_updates::events(tasks));
    let beside = stream::select(beside, config_updates::events(config));
    let beside = beside.map(|envelope| Some(Ok(sent(&envelope))));
    // It ends with the events of the sessions.
    let events = events.flatten().map(Some).chain(stream::iter([None]));
    let both = stream::select(events, beside).scan((), |(), event| ready(event));
    serve(app, caller, both).into_response()
}

/// What an id of an event says of those before it.
struct ResumePoint {
    /// From when on sessions are told that have no cursor here.
    since: Option<u64>,
    cursors: Vec<(String, u64)>,
}

/// `since:1708070833000,sess_A:7,sess_B:12`
fn id_of<'c>(since: Option<u64>, cursors: impl Iterator<Item = (&'c str, u64)>) -> String {
    let mut cursors: Vec<_> = cursors.collect();
    cursors.sort_unstable();
    // Events of sessions that are left out would come again.
    let since = since.filter(|_| cursors.len() <= MAX_SESSIONS_IN_ID);
    let kept = cursors.iter().rev().take(MAX_SESSIONS_IN_ID);
    let kept = kept.map(|(id, after)| format!("{}:{after}", session_id(id)));
    since.map(|since| format!("{SINCE}:{since}")).into_iter().chain(kept).collect::<Vec<_>>().join(",")
}

fn last_seen(headers: &HeaderMap) -> Result<Option<ResumePoint>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let one = |pair: &str| {
        let (session, after) = pair.split_once(':')?;
        Some((session.to_owned(), after.parse().ok()?))
    };
    // One of `since`, and those of sessions.
    let pairs = value.to_str().ok().map(|text| text.split(',').take(MAX_SESSIONS_IN_ID + 1).map(one));
    let pairs: Option<Vec<(String, u64)>> = pairs.and_then(Iterator::collect);
    let Some(mut cursors) = pairs else {
        let detail = "Last-Event-ID is none of ours: send the id of the last event, or leave it out";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    };
    let since = cursors.iter().find(|(name, _)| name == SINCE).map(|(_, since)| *since);
    cursors.retain(|(name, _)| name != SINCE);
    Ok(Some(ResumePoint { since, cursors }))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn read(value: &str) -> Result<Option<ResumePoint>, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(LAST_EVENT_ID, HeaderValue::from_str(value).unwrap());
        last_seen(&headers)
    }

    proptest! {
        // Promises: GW-121
        #[test]
        fn an_id_says_what_was_seen(
            since in any::<Option<u64>>(),
            cursors in proptest::collection::btree_map("[0-9A-Z]{1,26}", any::<u64>(), 1..100),
        ) {
            let id = id_of(since, cursors.iter().map(|(id, after)| (id.as_str(), *after)));
            let seen = read(&id).unwrap().unwrap();
            let is_whole = cursors.len() <= MAX_SESSIONS_IN_ID;
            prop_assert_eq!(seen.since, since.filter(|_| is_whole));
            prop_assert_eq!(seen.cursors.len(), cursors.len().min(MAX_SESSIONS_IN_ID));
            for (session, after) in &seen.cursors {
                prop_assert_eq!(cursors.get(session.strip_prefix("sess_").unwrap()), Some(after));
            }
        }

        #[test]
        fn what_is_none_of_ours_is_refused_and_breaks_nothing(value in "[ -~]{1,80}") {
            if let Ok(Some(seen)) = read(&value) {
                prop_assert!(value.contains(':'), "{:?}", seen.cursors);
            }
        }
    }
}
