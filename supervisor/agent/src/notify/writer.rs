//! From events to notifications in the store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use talon_extensions::EventKind;
use talon_store::limits::MAX_BATCH;
use talon_store::{Error, GroupKey, NotificationChange, Outbox, Timestamp};
use ulid::{Generator, Ulid};

use super::event::NewEvent;
use super::group::GAP;
use super::payload::{Payload, gap_summary};
use super::rules::{Incoming, Rules, Stored, severity_word};

/// The most notifications of an entry that wait. 10,000 are more than anybody reads; what is over is counted in one.
const MAX_WAITING: u32 = 10_000;
/// How often a decision is made anew while others change its groups. Each time one of them gets further.
const MAX_TRIES: u32 = 50;

/// Where numbered events come from, and which of them are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) source: String,
    /// The last number that was written before.
    pub(super) from: u64,
    /// The last number of these events.
    pub(super) to: u64,
}

/// Writes events.
pub(super) struct EventWriter {
    outbox: Arc<dyn Outbox>,
    ids: Mutex<Generator>,
    /// By what ids of this process differ from others'.
    process: String,
}

impl EventWriter {
    pub(super) fn new(outbox: Arc<dyn Outbox>) -> Self {
        Self { outbox, ids: Mutex::new(Generator::new()), process: Ulid::generate().to_string() }
    }

    pub(super) fn process(&self) -> &str {
        &self.process
    }

    /// Writes events as one decision, or as several if they are many. Returns the entries that have something
    /// new. With a cursor they are one decision, and are written unless they were before.
    pub(super) async fn write(
        &self,
        rules: &Rules,
        events: &[Incoming],
        cursor: Option<&Cursor>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut entries = BTreeSet::new();
        for piece in pieces(rules, events, cursor.is_some()) {
            entries.extend(self.write_piece(rules, piece, cursor).await?);
        }
        for entry in &entries {
            self.fold(entry).await?;
        }
        Ok(entries)
    }

    async fn write_piece(
        &self,
        rules: &Rules,
        events: &[Incoming],
        cursor: Option<&Cursor>,
    ) -> Result<BTreeSet<String>, Error> {
        let since = Instant::now();
        for _ in 0..MAX_TRIES {
            let stored = Stored {
                latest: self.outbox.latest(&rules.groups(events)).await?,
                known: self.outbox.known_events(&rules.pairs(events)).await?.into_iter().collect(),
            };
            let mut batch = rules.decide(events, stored, Timestamp::now(), &mut || self.next_id());
            batch.cursor = cursor.map(|cursor| (cursor.source.clone(), cursor.from, cursor.to));
            if batch.changes.is_empty() && batch.cursor.is_none() {
                return Ok(BTreeSet::new());
            }
            let new = batch.changes.iter().filter_map(|change| match change {
                NotificationChange::New(new) => Some(new.key.entry.clone()),
                NotificationChange::Extend { .. } => None,
            });
            let new = new.collect();
            if self.outbox.write(batch).await? {
                return Ok(new);
            }
            if let Some(cursor) = cursor
                && self.outbox.cursor(&cursor.source).await? != cursor.from
            {
                return Ok(BTreeSet::new());
            }
        }
        // Too many decide at once.
        Err(Error::Busy(since.elapsed()))
    }

    /// Makes room, if too many wait for an entry.
    async fn fold(&self, entry: &str) -> Result<(), Error> {
        let id = self.next_id();
        let event = NewEvent::new(EventKind::EventsGap, format!("gap {id}"), gap_summary(0)).happened();
        let now = Timestamp::now();
        let stand_in = talon_store::NewNotification {
            event: event.id.clone(),
            key: GroupKey { entry: entry.to_owned(), group: GAP.to_owned() },
            severity: severity_word(event.severity).to_owned(),
            payload: Payload::of(event).json(),
            count: 0,
            due_at: now,
            closes_at: now,
            created_at: now,
            id,
        };
        let folded = self.outbox.fold(MAX_WAITING, stand_in).await?;
        if folded.notifications > 0 {
            tracing::warn!(
                entry,
                notifications = folded.notifications,
                events = folded.events,
                "more than {MAX_WAITING} notifications wait: the oldest of the least important ones are only counted"
            );
        }
        Ok(())
    }

    /// An id after all earlier ones of this process.
    fn next_id(&self) -> String {
        // It fails once in 2^80 ids of a millisecond.
        self.ids.lock().generate().unwrap_or_else(|_| Ulid::generate()).to_string()
    }
}

/// How long after a failure events are written again.
pub(super) const RETRY_WAIT: Duration = Duration::from_secs(2);

/// Events in pieces that the store takes.
fn pieces<'e>(rules: &Rules, events: &'e [Incoming], whole: bool) -> Vec<&'e [Incoming]> {
    if whole {
        return vec![events];
    }
    let mut pieces = Vec::new();
    let (mut begin, mut pairs) = (0, 0);
    for (index, incoming) in events.iter().enumerate() {
        let more = rules.pairs(std::slice::from_ref(incoming)).len();
        if pairs + more > MAX_BATCH && index > begin {
            pieces.push(&events[begin..index]);
            (begin, pairs) = (index, 0);
        }
        pairs += more;
    }
    if begin < events.len() {
        pieces.push(&events[begin..]);
    }
    pieces
}
