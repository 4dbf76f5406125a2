use std::os::unix::net::UnixDatagram;

use tracing::Level;

use super::*;
use crate::log::journal::Journal;

fn text(entry: &QueueEntry) -> usize {
    match entry {
        QueueEntry::Text(text) => text.len(),
        _ => panic!("not a text"),
    }
}

#[test]
fn what_does_not_fit_is_counted_and_said_after_the_rest() {
    let queue = Queue::default();
    let push = |bytes: usize| queue.push(bytes, || QueueEntry::Text(vec![b'x'; bytes]));
    push(MAX_QUEUED_BYTES);
    push(5);
    push(9);
    assert_eq!(text(&queue.next()), MAX_QUEUED_BYTES);
    assert!(matches!(queue.next(), QueueEntry::Dropped(2)));
    push(6);
    assert_eq!(text(&queue.next()), 6);
}

#[test]
fn a_flush_of_an_idle_queue_returns() {
    Queue::default().flush(FLUSH_TIMEOUT);
}

// Promises: TRACE-5
#[test]
fn a_journal_that_nobody_reads_costs_lines_and_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let unread = UnixDatagram::bind(&path).unwrap();
    let outlet = LogOutput::Journal { journal: Journal::at(path).unwrap(), unreachable: false };
    let (writer, flush) = start(outlet).unwrap();
    let before = dropped();
    // The socket takes some hundred entries, the queue the rest of its bytes, and then lines are dropped.
    // Nothing here waits.
    while dropped() == before {
        writer.line(Line::internal(Level::INFO, "x".repeat(1000)));
    }
    // When it is read again, the journal gets the queued lines and the number of dropped ones.
    let mut entry = vec![0; 1 << 16];
    let said = loop {
        let size = unread.recv(&mut entry).unwrap();
        let text = String::from_utf8_lossy(&entry[..size]);
        if text.contains("log lines were dropped") {
            break text.into_owned();
        }
    };
    assert!(said.contains("PRIORITY=4"), "{said}");
    drop(flush);
}
