//! A stream of events that ends in time.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{FutureExt as _, Stream, StreamExt as _};

use crate::app::App;
use crate::events::Envelope;
use crate::identity::Caller;

/// How often a comment is sent where nothing happens: below the time after which proxies forget an idle connection.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

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
pub(super) fn serve<S>(
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

/// An event, as it is sent.
pub(super) fn sent(envelope: &Envelope) -> Event {
    Event::default().event(envelope.event.type_name()).data(envelope.to_json())
}
