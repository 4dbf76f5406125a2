use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::backends::{Backends, SocketPaths};
use crate::testing::{FixedCallers, test_settings};

/// Events behind which nobody is: it is asked for nothing.
fn session_events(caller: Caller) -> SessionEvents {
    let connector = Arc::new(SocketPaths { host: "/nonexistent".into(), agent: "/nonexistent".into() }) as _;
    let settings = test_settings("127.0.0.1:1".parse().unwrap());
    let callers = Arc::new(FixedCallers::default());
    let app = App::new(settings, Backends::new(&connector), callers, CancellationToken::new());
    SessionEvents::of_caller(app, caller)
}

fn error_of(envelope: Envelope) -> ErrorEvent {
    let ServerEvent::Error(error) = envelope.event else { panic!("{envelope:?}") };
    error
}

#[tokio::test]
async fn sessions_beyond_the_cursors_are_told_as_an_error() {
    let mut events = session_events(Caller::gateway());
    let named: Vec<String> = (0..=MAX_CURSORS).map(|number| format!("sess_{number}")).collect();
    let cursors = |from: usize, to: usize| named[from..to].iter().map(|session| (session.as_str(), 7_u64));
    assert_eq!(events.resume(cursors(0, MAX_CURSORS - 1), None), 0);
    assert_eq!(events.resume(cursors(0, 9), None), 0, "they have a place");
    // One more fits; what is named twice is one.
    let rest = cursors(MAX_CURSORS - 1, MAX_CURSORS + 1).chain(cursors(MAX_CURSORS, MAX_CURSORS + 1));
    assert_eq!(events.resume(rest, None), 1);
    assert_eq!(events.cursors().count(), MAX_CURSORS);
    let error = error_of(too_many_sessions(1, Some("r2".to_owned())));
    assert_eq!((error.reason.as_str(), error.reply_to.as_deref()), ("too_many_sessions", Some("r2")));
    assert!(
        error.message.contains("from now on: 1. ") && error.message.contains("another connection"),
        "{error:?}"
    );

    // While the agent was away two changed, of which one has a place.
    assert!(events.take_error().is_none());
    assert!(!events.place(vec!["0".to_owned(), "new".to_owned()]));
    let error = error_of(events.take_error().expect("an error"));
    assert!(error.reply_to.is_none() && error.message.contains("from now on: 1. "), "{error:?}");
    assert!(events.take_error().is_none(), "it is told once");
}

#[tokio::test]
async fn sessions_that_changed_are_counted_once_the_others_have_their_places() {
    let mut events = session_events(Caller::gateway());
    let changed = || (0..=MAX_CURSORS).map(|number| number.to_string()).collect::<Vec<_>>();
    assert!(events.place(changed()), "it is connected anew");
    assert!(events.take_error().is_none());
    assert!(!events.place(changed()));
    assert!(events.take_error().is_some());
}
