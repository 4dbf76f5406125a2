use std::collections::BTreeSet;

use futures_util::stream;
use parking_lot::Mutex;
use talon_extensions::NotificationEntry;
use talon_store::{Engine, NotificationFilter, PageRequest, Store, StoreOptions};

use super::*;
use crate::notify::payload::Payload;

/// A log whose streams end after some events, and whose acknowledgements may fail.
#[derive(Default)]
struct Log {
    events: Mutex<Vec<HostEvent>>,
    acknowledged: Mutex<Vec<u64>>,
    refuses: Mutex<Option<Status>>,
    asked: Mutex<Vec<u64>>,
}

impl Log {
    fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        let log = Self::default();
        log.events.lock().extend(numbers.into_iter().map(|number| HostEvent {
            number,
            kind: "plugin.failed".into(),
            severity: "critical".into(),
            summary: format!("number {number}"),
            time_unix_ms: 1_700_000_000_000,
            fields: [("plugin".to_owned(), format!("p{number}"))].into(),
            ..HostEvent::default()
        }));
        log
    }
}

#[async_trait]
impl HostEvents for Log {
    async fn subscribe(&self, after: u64) -> Result<BoxStream<'static, Result<HostEvent, Status>>, Status> {
        self.asked.lock().push(after);
        let events = self.events.lock().clone();
        if after > events.last().map_or(0, |last| last.number) {
            return Err(Status::out_of_range("never given out"));
        }
        let after = events.into_iter().filter(move |event| event.number > after);
        let end = self.refuses.lock().clone().map(Err);
        Ok(stream::iter(after.map(Ok).chain(end)).boxed())
    }

    async fn acknowledge(&self, through: u64) -> Result<(), Status> {
        self.acknowledged.lock().push(through);
        self.refuses.lock().take().map_or(Ok(()), Err)
    }
}

async fn notifier() -> (tempfile::TempDir, Store, Arc<Notifier>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("agent/agent.db");
    let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
    let notifier = Notifier::new(store.outbox());
    notifier.configure(&[NotificationEntry::new(&["plugin.*", "events.gap"], "a.b")]);
    (directory, store, notifier)
}

async fn told(store: &Store) -> Vec<String> {
    let page = store.outbox().list(&NotificationFilter::default(), &PageRequest::first(1000)).await;
    let mut ids: Vec<String> = page.expect("a page").items.into_iter().map(|one| one.event).collect();
    ids.reverse();
    ids
}

// Promises: EXT-57
#[tokio::test]
async fn an_event_is_told_once_and_acknowledged_when_it_is_stored() {
    let (_directory, store, notifier) = notifier().await;
    let log = Log::new(1000..1200);
    // The acknowledgement of the first piece fails, and the stream breaks.
    *log.refuses.lock() = Some(Status::unavailable("the supervisor is replaced"));
    follow(&notifier, &log, "host").await.expect_err("it broke");
    let first = notifier.cursor("host").await.expect("a number");
    assert!((1000..1199).contains(&first) && told(&store).await.len() as u64 == first - 999);
    follow(&notifier, &log, "host").await.expect("to the end");
    let all = told(&store).await;
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (200, 200));
    assert_eq!(log.acknowledged.lock().last(), Some(&1199));
    assert_eq!(*log.asked.lock(), [0, first]);
    follow(&notifier, &log, "host").await.expect("to the end");
    assert_eq!(told(&store).await.len(), 200);
}

#[tokio::test]
async fn another_log_is_read_from_its_beginning() {
    let (_directory, store, notifier) = notifier().await;
    follow(&notifier, &Log::new(5000..5002), "host").await.expect("to the end");
    let other = Log::new(3000..3002);
    follow(&notifier, &other, "host").await.expect("to the end");
    assert_eq!(*other.asked.lock(), [5001, 0]);
    assert_eq!(told(&store).await.len(), 4);
    assert_eq!(notifier.cursor("host").await.expect("a number"), 3001);
}

// Promises: EXT-180
#[tokio::test]
async fn counts_gaps_and_unknown_kinds_are_understood() {
    let (_directory, store, notifier) = notifier().await;
    let log = Log::new(1..4);
    {
        let mut events = log.events.lock();
        events[0].fields.insert("count".into(), "7".into());
        events[1].kind = "plugin.dances".into();
        events[2].kind = "events.gap".into();
        let numbers = [("dropped", "12"), ("from", "3"), ("through", "14")];
        events[2].fields = numbers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    }
    follow(&notifier, &log, "host").await.expect("to the end");
    let page = store.outbox().list(&NotificationFilter::default(), &PageRequest::default()).await;
    let items = page.expect("a page").items;
    let counts: Vec<u64> = items.iter().map(|one| one.count).collect();
    assert_eq!(counts, [12, 7]);
    let gap = &Payload::read(&items[0].payload).expect("a payload").events[0];
    let fields: Vec<&str> = gap.fields.keys().map(String::as_str).collect();
    assert_eq!(fields, EventKind::EventsGap.fields());
    assert_eq!((gap.fields["first"].as_str(), gap.fields["last"].as_str()), ("3", "14"));
    assert_eq!(notifier.cursor("host").await.expect("a number"), 3);
}
