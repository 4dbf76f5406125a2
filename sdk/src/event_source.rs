//! Events that a plugin tells: what happens elsewhere, such as a mail that came.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use talon_proto::notices::{AcknowledgeEventsRequest, PluginEvent, RefusedEvent};
use tokio::sync::{Notify, watch};

use crate::notification::Severity;
use crate::text::cut;

/// How many events wait for the host, and how many bytes: some hours of what hosts let a plugin tell by default.
const MAX_EVENTS: usize = 4096;
const MAX_BYTES: usize = 4 << 20;
/// What hosts keep of each text (`talon.plugin.v1.PluginEvent`).
const MAX_SUMMARY_BYTES: usize = 490;
const MAX_DETAILS_BYTES: usize = 16 << 10;
const MAX_FIELD_BYTES: usize = 512;
/// More than that is refused by hosts.
const MAX_FIELDS: usize = 16;

/// Something that happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceEvent(PluginEvent);

impl SourceEvent {
    /// An event. `id` is 1 to 128 letters, digits and `-_.:/`, and another one for each event: the host drops one that it has.
    /// `topic` is 1 to 64 of `a-z`, `0-9` and `-_.`, the plugin's word for what it is about. `summary` is one line.
    #[must_use]
    pub fn new(id: impl Into<String>, topic: impl Into<String>, summary: impl Into<String>) -> Self {
        let (id, topic, summary) =
            (id.into(), topic.into(), cut(&summary.into(), MAX_SUMMARY_BYTES).to_owned());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_unix_ms = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Self(PluginEvent { id, topic, summary, time_unix_ms, ..PluginEvent::default() })
    }

    /// More about it; 16 KiB are sent.
    #[must_use]
    pub fn details(mut self, details: impl Into<String>) -> Self {
        self.0.details = cut(&details.into(), MAX_DETAILS_BYTES).to_owned();
        self
    }

    /// A further value, of which 512 bytes are sent; at most 16. A name is 1 to 32 of `a-z`, `0-9` and `_`.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if self.0.fields.len() < MAX_FIELDS {
            self.0.fields.insert(name.into(), cut(&value.into(), MAX_FIELD_BYTES).to_owned());
        }
        self
    }

    /// How much it matters; `info` unless set.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        let word = match severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        };
        word.clone_into(&mut self.0.severity);
        self
    }

    pub(crate) fn from_wire(event: PluginEvent) -> Self {
        Self(event)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The plugin's word for what it is about.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// Its line.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.0.summary
    }

    /// More about it.
    #[must_use]
    pub fn details_text(&self) -> &str {
        &self.0.details
    }

    /// The value of a field.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.fields.get(name).map(String::as_str)
    }

    fn bytes(&self) -> usize {
        let fields = self.0.fields.iter().map(|(name, value)| name.len() + value.len());
        self.0.id.len()
            + self.0.topic.len()
            + self.0.summary.len()
            + self.0.details.len()
            + fields.sum::<usize>()
    }
}

/// Too many events wait for the host. Tell this one again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_EVENTS} events, or {MAX_BYTES} bytes of them, wait for the host: tell this one again later")]
pub struct EventQueueFullError;

/// The host never takes the event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host refuses the event: {reason}")]
pub struct EventRefusedError {
    /// The host's reason.
    pub reason: String,
}

/// Tells the host events. Cheap to clone; clones share the queue. Give it to [`Plugin::events`](crate::Plugin::events), and keep a
/// clone where things happen.
///
/// Each event is kept in memory and sent again until the host has it on its disk. So a host that restarts loses none. A plugin that
/// must not lose events over its own end keeps them itself, and tells those again with the same id that were not acknowledged.
/// The operator has to let the plugin tell events (`events` in its entry), and may limit how many; the others wait here.
///
/// ```
/// # use talon_sdk::{EventSource, Plugin, SourceEvent};
/// let events = EventSource::new();
/// let plugin = Plugin::new("mail").events(events.clone());
/// // Later, when a mail comes:
/// events.tell(SourceEvent::new("mail/7", "mail.arrived", "A mail of Ada").field("from", "ada"))?;
/// # Ok::<(), talon_sdk::EventQueueFullError>(())
/// ```
#[derive(Clone, Default)]
pub struct EventSource {
    queue: Arc<EventQueue>,
}

#[derive(Default)]
struct EventQueue {
    state: Mutex<State>,
    /// There are new events, or another listener.
    news: Notify,
    /// There is room again.
    room: Notify,
}

#[derive(Default)]
struct State {
    /// Counts the listeners: the latest one gets the events.
    turn: u64,
    next: u64,
    bytes: usize,
    /// By their order.
    waiting: BTreeMap<u64, WaitingEvent>,
    places: HashMap<String, u64>,
}

struct WaitingEvent {
    event: SourceEvent,
    settlement: watch::Sender<Option<Result<(), EventRefusedError>>>,
}

/// An event that was told. It goes to the host whether or not anybody waits for this.
#[derive(Debug)]
pub struct EventReceipt(watch::Receiver<Option<Result<(), EventRefusedError>>>);

impl EventReceipt {
    /// Waits until the host has the event on its disk, as long as that takes.
    ///
    /// # Errors
    /// [`EventRefusedError`]: the host never takes it, or the plugin ends.
    pub async fn acknowledged(mut self) -> Result<(), EventRefusedError> {
        match self.0.wait_for(Option::is_some).await {
            Ok(settlement) => settlement.clone().unwrap_or(Ok(())),
            Err(_) => Err(EventRefusedError { reason: "the plugin has ended before it was sent".to_owned() }),
        }
    }

    /// What became of the event: `Ok` once the host has it on its disk, an error if it never takes it, `None` as long as neither is known.
    #[must_use]
    pub fn settlement(&self) -> Option<Result<(), EventRefusedError>> {
        self.0.borrow().clone()
    }
}

impl EventSource {
    /// A source without events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells an event; never waits. One whose id waits already is the same event.
    ///
    /// # Errors
    /// [`EventQueueFullError`]: the host does not take events, or not so many.
    pub fn tell(&self, event: SourceEvent) -> Result<EventReceipt, EventQueueFullError> {
        let mut state = self.queue.state.lock();
        let known = state.places.get(&event.0.id).and_then(|place| state.waiting.get(place));
        if let Some(waiting) = known {
            return Ok(EventReceipt(waiting.settlement.subscribe()));
        }
        let bytes = state.bytes + event.bytes();
        if state.waiting.len() >= MAX_EVENTS || bytes > MAX_BYTES {
            return Err(EventQueueFullError);
        }
        let place = state.next;
        state.next += 1;
        state.bytes = bytes;
        state.places.insert(event.0.id.clone(), place);
        let (settlement, receipt) = watch::channel(None);
        state.waiting.insert(place, WaitingEvent { event, settlement });
        drop(state);
        self.queue.news.notify_waiters();
        Ok(EventReceipt(receipt))
    }

    /// Tells an event as soon as there is room, and waits until the host has it on its disk, as long as that takes.
    ///
    /// # Errors
    /// [`EventRefusedError`]: the host never takes it.
    pub async fn deliver(&self, event: SourceEvent) -> Result<(), EventRefusedError> {
        let receipt = loop {
            let room = self.queue.room.notified();
            tokio::pin!(room);
            // Registered before the check, so that nothing in between is missed.
            room.as_mut().enable();
            if let Ok(receipt) = self.tell(event.clone()) {
                break receipt;
            }
            room.await;
        };
        receipt.acknowledged().await
    }

    /// How many events the host has not acknowledged.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.state.lock().waiting.len()
    }

    pub(crate) fn listen(&self) -> EventListener {
        let mut state = self.queue.state.lock();
        state.turn += 1;
        let turn = state.turn;
        drop(state);
        self.queue.news.notify_waiters();
        EventListener { queue: Arc::clone(&self.queue), turn, after: None }
    }

    pub(crate) fn acknowledge(&self, acknowledged: AcknowledgeEventsRequest) {
        let mut state = self.queue.state.lock();
        for id in acknowledged.ids {
            state.settle(&id, Ok(()));
        }
        for RefusedEvent { id, reason } in acknowledged.refused {
            if state.settle(&id, Err(EventRefusedError { reason: reason.clone() })) {
                tracing::warn!(id, "the host refuses an event: {reason}");
            }
        }
        drop(state);
        self.queue.room.notify_waiters();
    }
}

impl State {
    /// Removes an event; whether there was one.
    fn settle(&mut self, id: &str, settlement: Result<(), EventRefusedError>) -> bool {
        let waiting = self.places.remove(id).and_then(|place| self.waiting.remove(&place));
        let Some(waiting) = waiting else { return false };
        self.bytes -= waiting.event.bytes();
        waiting.settlement.send_replace(Some(settlement));
        true
    }
}

impl fmt::Debug for EventSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSource").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

/// Sends events until another listener takes its place.
pub(crate) struct EventListener {
    queue: Arc<EventQueue>,
    turn: u64,
    /// The place of the last one that was sent.
    after: Option<u64>,
}

impl EventListener {
    /// The next event that was not acknowledged; `None` once another listener took the place.
    pub(crate) async fn next(&mut self) -> Option<PluginEvent> {
        loop {
            let news = self.queue.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let state = self.queue.state.lock();
                if state.turn != self.turn {
                    return None;
                }
                let from = self.after.map_or(0, |after| after + 1);
                if let Some((place, waiting)) = state.waiting.range(from..).next() {
                    self.after = Some(*place);
                    return Some(waiting.event.0.clone());
                }
            }
            news.await;
        }
    }
}

#[cfg(test)]
#[path = "event_source_tests.rs"]
mod tests;
