use super::*;

fn amount(notice: Option<Notice>) -> (String, f64) {
    match notice.expect("a listener").kind {
        Some(Kind::Progress(progress)) => (progress.call_id, progress.progress),
        other => panic!("no progress: {other:?}"),
    }
}

#[tokio::test]
async fn the_latest_progress_of_a_call_is_taken() {
    let board = Arc::new(PendingNotices::default());
    let listener = board.listen();
    for step in 0..1000 {
        board.progress("a", f64::from(step), None, "");
        board.progress("b", 1.0, None, "");
    }
    assert_eq!(amount(listener.next().await), ("a".to_owned(), 999.0));
    assert_eq!(amount(listener.next().await), ("b".to_owned(), 1.0));
    board.progress("a", 1000.0, None, "");
    assert_eq!(amount(listener.next().await), ("a".to_owned(), 1000.0));
}

#[tokio::test]
async fn more_calls_than_there_is_room_for_lose_the_oldest() {
    let board = Arc::new(PendingNotices::default());
    let listener = board.listen();
    for call in 0..=MAX_CALLS {
        board.progress(&format!("c{call}"), 1.0, None, "");
    }
    assert_eq!(amount(listener.next().await).0, "c1");
}

#[tokio::test]
async fn without_a_listener_progress_is_dropped_and_a_change_is_kept() {
    let notifier = Notifier::new();
    let board = &notifier.board;
    board.progress("a", 1.0, None, "");
    drop(board.listen());
    board.progress("a", 2.0, None, "");
    notifier.capabilities_changed();
    notifier.capabilities_changed();
    let listener = board.listen();
    let first = listener.next().await.expect("told").kind;
    assert!(matches!(first, Some(Kind::CapabilitiesChanged(_))), "{first:?}");
    board.progress("a", 3.0, None, "");
    assert_eq!(amount(listener.next().await).1, 3.0);
}

#[tokio::test]
async fn a_second_listener_ends_the_first() {
    let notifier = Notifier::new();
    let first = notifier.board.listen();
    let waiting = tokio::spawn(async move { first.next().await });
    tokio::task::yield_now().await;
    let second = notifier.board.listen();
    notifier.board.progress("a", 1.0, None, "");
    assert_eq!(waiting.await.expect("joined"), None);
    assert_eq!(amount(second.next().await).1, 1.0);
}

#[test]
fn what_is_no_amount_is_not_told() {
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        assert_eq!(progress_message("a", bad, None, ""), None);
        assert_eq!(progress_message("a", 1.0, Some(bad), "").expect("told").total, None);
    }
    let told =
        progress_message("a", 0.0, Some(2.0), &format!("{}\nsecond line", "ü".repeat(600))).expect("told");
    assert_eq!((told.message.len(), told.total), (1024, Some(2.0)));
}

// Promises: MCP-52
#[tokio::test]
async fn changed_resources_are_told_once_each_and_in_notices_that_hosts_take() {
    let notifier = Notifier::new();
    let long = |number: usize| format!("x:{number}:{}", "u".repeat(1000));
    for number in 0..MAX_UPDATED + 5 {
        notifier.resource_updated(&long(number));
        notifier.resource_updated(&long(number));
    }
    notifier.resource_updated("");
    notifier.resource_updated(&"u".repeat(MAX_URI_BYTES + 1));
    let listener = notifier.board.listen();
    let mut told = Vec::new();
    while told.len() < MAX_UPDATED {
        match listener.next().await.expect("a listener").kind {
            Some(Kind::ResourcesUpdated(updated)) => {
                assert!(updated.uris.iter().map(String::len).sum::<usize>() <= MAX_URIS_BYTES);
                told.extend(updated.uris);
            }
            other => panic!("no resources: {other:?}"),
        }
    }
    assert_eq!(told, (5..MAX_UPDATED + 5).map(long).collect::<Vec<_>>(), "the oldest are dropped");
    notifier.board.progress("a", 1.0, None, "");
    assert_eq!(amount(listener.next().await).0, "a", "nothing else is left");
}
