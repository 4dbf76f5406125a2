//! What the rest of the agent sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use talon_extensions::contract::Event;
use talon_extensions::{EventKind, NotificationEntry};
use talon_sanitize::nearest;
use talon_store::{Error, GroupKey, Notification, Outbox};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

use super::event::{NewEvent, within_bounds};
use super::group::group_of_one;
use super::queue::EventQueue;
use super::rules::{Incoming, Rules};
use super::signal::LaneSignal;
use super::writer::{Cursor, EventWriter, RETRY_WAIT};

/// How many events are written at once.
const MAX_WRITTEN: usize = 256;

/// Hears of numbered events before they count as told.
#[async_trait]
pub(crate) trait EventObserver: Send + Sync {
    /// Takes events. Some may come again.
    ///
    /// # Errors
    /// Those of the store: they are told again.
    async fn observe(self: Arc<Self>, events: &[Event]) -> Result<(), Error>;
}

/// Takes events, and knows the configured entries.
pub(crate) struct Notifier {
    rules: RwLock<Arc<Rules>>,
    queue: EventQueue,
    writer: EventWriter,
    outbox: Arc<dyn Outbox>,
    /// By entry: has its lane look.
    lanes: Mutex<BTreeMap<String, Arc<LaneSignal>>>,
    configured: Notify,
    /// Hears of numbered events, too.
    observer: OnceLock<Weak<dyn EventObserver>>,
    /// How many attempts ended.
    attempts: watch::Sender<u64>,
}

/// Why an event is not told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotifyError {
    /// There is no such entry.
    #[error("there is no notification entry {shown:?}: {help}")]
    UnknownEntry {
        /// Its name, bounded.
        shown: String,
        /// What to do.
        help: String,
    },
    /// It was only counted, since too many wait.
    #[error(
        "too many notifications wait for the entry, so that this one was only counted: see `talon notification list`"
    )]
    NoRoom,
    /// It could not be stored.
    #[error("the notification cannot be stored")]
    Store(#[from] Error),
}

impl Notifier {
    pub(crate) fn new(outbox: Arc<dyn Outbox>) -> Arc<Self> {
        Arc::new(Self {
            rules: RwLock::default(),
            queue: EventQueue::default(),
            writer: EventWriter::new(Arc::clone(&outbox)),
            outbox,
            lanes: Mutex::default(),
            configured: Notify::new(),
            observer: OnceLock::new(),
            attempts: watch::Sender::new(0),
        })
    }

    /// Has an observer hear of numbered events from now on. The first one stays.
    pub(crate) fn observe_numbered(&self, observer: Weak<dyn EventObserver>) {
        let _first_stays = self.observer.set(observer);
    }

    /// Takes over what is configured.
    pub(crate) fn configure(&self, entries: &[NotificationEntry]) {
        *self.rules.write() = Arc::new(Rules::new(entries));
        self.configured.notify_one();
        self.look_at_once();
    }

    /// Tells an event to the entries that take it. Never waits: it is stored a moment later.
    pub(crate) fn notify(&self, event: NewEvent) {
        self.queue.push(event.happened(), &self.rules());
    }

    /// Tells an event to one entry, whatever that takes, and returns when it is stored. An event of an id that was
    /// told to the entry before is not told again.
    ///
    /// # Errors
    /// [`NotifyError`]
    pub(crate) async fn notify_entry(&self, name: &str, event: NewEvent) -> Result<(), NotifyError> {
        self.require_entry(name)?;
        let incoming = Incoming { event: event.happened(), to: Some(name.to_owned()) };
        self.write(&[incoming], None).await?;
        Ok(())
    }

    /// Sends a test to one entry. Returns its notification.
    ///
    /// # Errors
    /// [`NotifyError`]
    pub(crate) async fn test(&self, name: &str, by: &str) -> Result<Notification, NotifyError> {
        let id = format!("test {}", Ulid::generate());
        let summary = format!("This is a test of the entry {name}");
        let event = NewEvent::new(EventKind::Test, id.clone(), summary)
            .details(format!("{by} had it sent with `talon notification test`. Nothing has happened."))
            .field("entry", name);
        self.notify_entry(name, event).await?;
        let group = GroupKey { entry: name.to_owned(), group: group_of_one(&id) };
        let stored = self.outbox.latest(&[group]).await?.pop();
        if let Some(stored) = &stored {
            self.wish(name, &stored.id);
        }
        // It may have made room for others.
        stored.ok_or(NotifyError::NoRoom)
    }

    /// Tells numbered events of a source: those after `from`, up to `to`.
    pub(super) async fn notify_numbered(
        &self,
        source: &str,
        from: u64,
        to: u64,
        events: Vec<Event>,
    ) -> Result<(), Error> {
        let events: Vec<Event> = events.into_iter().map(within_bounds).collect();
        if let Some(observer) = self.observer.get().and_then(Weak::upgrade) {
            observer.observe(&events).await?;
        }
        let incoming = |event| Incoming { event, to: None };
        let events: Vec<Incoming> = events.into_iter().map(incoming).collect();
        self.write(&events, Some(&Cursor { source: source.to_owned(), from, to })).await
    }

    /// Up to which number the events of a source were told.
    pub(super) async fn cursor(&self, source: &str) -> Result<u64, Error> {
        self.outbox.cursor(source).await
    }

    /// The configured entry of this name.
    pub(crate) fn entry(&self, name: &str) -> Option<NotificationEntry> {
        self.rules().get(name).cloned()
    }

    /// The names of all entries.
    pub(crate) fn entry_names(&self) -> BTreeSet<String> {
        self.rules().entries().map(|entry| entry.name().to_owned()).collect()
    }

    /// Refuses a name that no entry has.
    ///
    /// # Errors
    /// [`NotifyError::UnknownEntry`], with the nearest one.
    pub(crate) fn require_entry(&self, name: &str) -> Result<(), NotifyError> {
        let names = self.entry_names();
        if names.contains(name) {
            return Ok(());
        }
        let help = match nearest(name, names.iter().map(String::as_str)).first() {
            Some(near) => format!("did you mean {near}?"),
            None if names.is_empty() => "write one under extensions.notifications".to_owned(),
            None => format!("there are {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let shown = name.chars().take(64).filter(|c| !c.is_control()).collect();
        Err(NotifyError::UnknownEntry { shown, help })
    }

    /// How many events were dropped since more came than are written.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Has all lanes look, also those whose sinks failed a moment ago.
    pub(crate) fn look_at_once(&self) {
        self.lanes.lock().values().for_each(|lane| lane.look_at_once());
    }

    /// Has a notification of an entry be attempted before others.
    pub(crate) fn wish(&self, entry: &str, id: &str) {
        self.lane_signal(entry).wish(id);
    }

    /// Changes whenever an attempt ended.
    pub(crate) fn attempts(&self) -> watch::Receiver<u64> {
        self.attempts.subscribe()
    }

    pub(super) fn attempt_ended(&self) {
        self.attempts.send_modify(|attempts| *attempts = attempts.wrapping_add(1));
    }

    /// What the lane of an entry is told.
    pub(super) fn lane_signal(&self, entry: &str) -> Arc<LaneSignal> {
        Arc::clone(self.lanes.lock().entry(entry.to_owned()).or_default())
    }

    /// Resolves when the configuration has changed.
    pub(super) async fn configured(&self) {
        self.configured.notified().await;
    }

    /// Writes events as they come, until `ending` and nothing is left.
    pub(super) async fn write_events(self: Arc<Self>, ending: CancellationToken) {
        loop {
            let events = self.queue.take(MAX_WRITTEN, self.writer.process());
            if events.is_empty() {
                tokio::select! {
                    biased;
                    () = self.queue.filled() => continue,
                    () = ending.cancelled() => return,
                }
            }
            while let Err(error) = self.write(&events, None).await {
                let error_text = talon_error_chain::error_chain(&error);
                if !error.is_retryable() {
                    tracing::error!(events = events.len(), error = error_text, "events are not told");
                    break;
                }
                tracing::warn!(error = error_text, "events are told when they can be stored");
                tokio::select! {
                    () = ending.cancelled() => {
                        tracing::error!(events = events.len(), "events are lost, since they cannot be stored");
                        return;
                    }
                    () = sleep(RETRY_WAIT) => {}
                }
            }
        }
    }

    async fn write(&self, events: &[Incoming], cursor: Option<&Cursor>) -> Result<(), Error> {
        let entries = self.writer.write(&self.rules(), events, cursor).await?;
        let lanes = self.lanes.lock();
        for lane in entries.iter().filter_map(|entry| lanes.get(entry)) {
            lane.changed();
        }
        Ok(())
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read())
    }
}
