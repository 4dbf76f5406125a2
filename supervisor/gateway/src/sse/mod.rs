//! Events over HTTP: `text/event-stream`.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{FutureExt as _, Stream, StreamExt as _};

use crate::api::sessions::turn::{Turn, unix_ms};
use crate::app::App;
use crate::events::agent::ErrorEvent;
use crate::events::{Envelope, ServerEvent};
use crate::identity::Caller;
use crate::problem::Problem;

/// How often a comment is sent where nothing happens: below the time after which proxies forget an idle connection.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

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

/// When a stream to this caller ends: with the gateway, or with the credential.
pub(crate) fn ended(app: &App, caller: &Caller) -> impl Future<Output = ()> + Send + use<> {
    let (ending, credential) = (app.ending(), app.revocations.watch(caller));
    async move {
        tokio::select! {
            () = ending.cancelled() => {}
            () = credential.revoked() => {}
        }
    }
}

/// A stream that ends in time.
fn serve<S>(
    app: &App,
    caller: &Caller,
    events: S,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<S>>
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    let end = ended(app, caller);
    let events = events.take_until(end.boxed());
    Sse::new(events.boxed()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

fn sent(envelope: &Envelope) -> Event {
    Event::default().event(envelope.event.type_name()).data(envelope.to_json())
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
