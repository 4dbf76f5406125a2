use super::*;

fn event(id: usize) -> SourceEvent {
    SourceEvent::new(id.to_string(), "t", "s")
}

// Promises: EXT-153
#[tokio::test]
async fn what_was_not_acknowledged_is_sent_again_in_order() {
    let source = EventSource::new();
    let receipts = [1, 2, 2, 3].map(|id| source.tell(event(id)).expect("there is room"));
    let settled = || receipts.each_ref().map(|receipt| receipt.settlement().is_some());
    let mut first = source.listen();
    assert_eq!(first.next().await.expect("told").id, "1");
    assert_eq!(first.next().await.expect("told").id, "2");
    let mut second = source.listen();
    assert!(first.next().await.is_none(), "another one listens");
    let ids = vec!["1".to_owned(), "of nothing".to_owned()];
    source.acknowledge(AcknowledgeEventsRequest { ids, refused: Vec::new() });
    assert_eq!((settled(), receipts[0].settlement()), ([true, false, false, false], Some(Ok(()))));
    assert_eq!((second.next().await.expect("told").id, source.waiting()), ("2".to_owned(), 2));
    assert_eq!(second.next().await.expect("told").id, "3");
    let delivered = tokio::spawn({
        let source = source.clone();
        async move { source.deliver(event(4)).await }
    });
    assert_eq!(second.next().await.expect("told").id, "4");
    let refused = RefusedEvent { id: "4".into(), reason: "bad".into() };
    source.acknowledge(AcknowledgeEventsRequest { ids: Vec::new(), refused: vec![refused] });
    assert_eq!(delivered.await.expect("it ends").map_err(|error| error.reason), Err("bad".to_owned()));
}

// Promises: EXT-153
#[test]
fn a_host_that_takes_nothing_fills_a_bounded_queue() {
    let source = EventSource::new();
    for id in 0..MAX_EVENTS {
        source.tell(event(id)).expect("there is room");
    }
    assert!(source.tell(event(MAX_EVENTS)).is_err());
    let large = EventSource::new();
    let refused =
        (0..MAX_EVENTS).position(|id| large.tell(event(id).details("x".repeat(MAX_DETAILS_BYTES))).is_err());
    assert!(refused.is_some_and(|at| at < MAX_BYTES / MAX_DETAILS_BYTES + 1), "{refused:?}");
}
