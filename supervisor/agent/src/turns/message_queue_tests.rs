use std::task::Poll;

use futures_util::{FutureExt as _, poll};

use super::*;

fn text(text: &str) -> Option<(String, String)> {
    Some((text.to_owned(), format!("id-{text}")))
}

async fn next(queues: &MessageQueues, session: SessionId) -> QueuePlace {
    match queues.wait(session, 3, None).await.expect("room") {
        QueueOutcome::Next(place) => place,
        QueueOutcome::Joined(_) => panic!("it cannot be merged"),
    }
}

// Promises: GW-66
#[tokio::test]
async fn messages_of_a_session_come_in_their_order_and_are_bounded() {
    let (queues, session) = (MessageQueues::default(), SessionId::generate());
    let first = next(&queues, session).await;
    let mut second = Box::pin(queues.wait(session, 3, None));
    let mut third = Box::pin(queues.wait(session, 3, None));
    assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
    let refused = queues.wait(session, 3, None).await.expect_err("three wait");
    assert!(refused.message().contains("agent.sessions.queue"), "{refused}");
    // Another session has a queue of its own.
    drop(next(&queues, SessionId::generate()).await);
    drop(first);
    assert!(poll!(&mut third).is_pending());
    let Poll::Ready(Ok(QueueOutcome::Next(place))) = poll!(&mut second) else { panic!("it is next") };
    // One that gave up leaves room.
    drop(third);
    drop(place);
    assert!(queues.0.lock().is_empty());
    assert!(next(&queues, session).now_or_never().is_some());
}

// Promises: GW-66
#[tokio::test]
async fn what_waits_together_may_become_one_turn() {
    let (queues, session) = (MessageQueues::default(), SessionId::generate());
    let running = next(&queues, session).await;
    let mut first = Box::pin(queues.wait(session, 9, text("a")));
    let mut second = Box::pin(queues.wait(session, 9, text("b")));
    let mut gone = Box::pin(queues.wait(session, 9, text("c")));
    for waiting in [&mut first, &mut second, &mut gone] {
        assert!(poll!(waiting).is_pending());
    }
    drop(gone);
    drop(running);
    let Poll::Ready(Ok(QueueOutcome::Next(place))) = poll!(&mut first) else { panic!("it is next") };
    let merged = place.take_mergeable();
    let texts: Vec<&str> = merged.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["b"], "its own is its own already");
    // The turn does not begin after all.
    drop(merged);
    drop(place);
    let Poll::Ready(Err(status)) = poll!(&mut second) else { panic!("it is told") };
    assert!(status.message().contains("ask again"), "{status}");
}
