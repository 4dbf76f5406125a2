//! Events over HTTP: `text/event-stream`.
//!
//! | module | contents |
//! |---|---|
//! | `stream` | a stream that ends in time |
//! | `session_stream` | events of sessions, from where `Last-Event-ID` says |

mod session_stream;
mod stream;

use std::convert::Infallible;
use std::future::ready;

use axum::response::sse::{Event, Sse};
use futures_util::{Stream, StreamExt as _};

use self::stream::{sent, serve};
use crate::app::App;
use crate::clock::unix_ms;
use crate::events::agent::ErrorEvent;
use crate::events::{Envelope, ServerEvent};
use crate::identity::Caller;
use crate::problem::Problem;
use crate::turn::Turn;

pub(crate) use session_stream::routes;
pub(crate) use stream::{KEEP_ALIVE, ended};

/// The events of a turn, and then the end of the stream. Letting go of it cancels the turn.
pub(crate) fn turn(
    app: &App,
    caller: &Caller,
    turn: Turn,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let session = crate::events::ids::session_id(&turn.started.session_id);
    let events = turn.events().map(move |event| {
        let envelope = event.unwrap_or_else(|status| lost(&session, status.into()));
        Ok(sent(&envelope))
    });
    serve(app, caller, events)
}

/// Texts of one kind, as they come.
pub(crate) fn texts<S>(
    app: &App,
    caller: &Caller,
    kind: &'static str,
    texts: S,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<S>>
where
    S: Stream<Item = String> + Send + 'static,
{
    serve(app, caller, texts.map(move |text| Ok(Event::default().event(kind).data(text))))
}

/// Texts with the names of their kinds, as they come; what is no text is left out.
pub(crate) fn named<S>(
    app: &App,
    caller: &Caller,
    texts: S,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<S>>
where
    S: Stream<Item = Option<(&'static str, String)>> + Send + 'static,
{
    let texts = texts.filter_map(ready);
    serve(app, caller, texts.map(|(kind, text)| Ok(Event::default().event(kind).data(text))))
}

/// The stream to the agent broke: the client is told so before its own ends.
fn lost(session: &str, problem: Problem) -> Envelope {
    let event = ErrorEvent {
        session_id: Some(session.to_owned()),
        reply_to: None,
        reason: problem.kind().name().replace('-', "_"),
        message: problem.detail().to_owned(),
        partial: None,
        retry_after: None,
    };
    Envelope::now(ServerEvent::Error(event), unix_ms())
}
