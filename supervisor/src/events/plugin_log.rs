//! The log of events that plugins tell. It has a directory, bounds and numbers of its own, so that no plugin pushes the
//! supervisor's own events out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use prost::Message as _;
use talon_event_log::{AcknowledgeError, EventLog, EventReader, Settings};
use talon_plugin::SourceEvent;
use talon_proto::host::HostEvent;
use talon_sanitize::Raw;
use tokio::sync::watch;

use super::known_ids::KnownIds;
use super::log_state::LogState;
use super::unread_events::UnreadEvents;
use crate::blocking::blocking;
use crate::config::Config;
use crate::to_wire::{unix_ms, wire};

/// The directory below the one for data.
const DIRECTORY: &str = "plugin-events";
/// What the events are, in the configuration of notifications too.
const KIND: &str = "source.event";
/// Fields of the host's.
const PLUGIN: &str = "plugin";
const TOPIC: &str = "topic";
const EVENT_ID: &str = "event_id";
/// The subscriber that makes notifications of events.
const AGENT: &str = "agent";
/// Of how many plugins is counted what the agent did not read: as many as a supervisor has.
const MAX_COUNTED_PLUGINS: usize = talon_plugin::MAX_PLUGINS;

/// Records events of plugins. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PluginEventLog {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    open: Mutex<OpenLog>,
    /// Another supervisor may have it. Beside `open`, which is locked while the disk syncs.
    is_paused: AtomicBool,
    /// How many events of each plugin went before the agent had read them.
    dropped: Mutex<BTreeMap<Arc<str>, u64>>,
    state: watch::Sender<LogState>,
}

#[derive(Default)]
struct OpenLog {
    /// `None` while it cannot be opened, or another supervisor has it.
    log: Option<EventLog>,
    known: KnownIds,
    unread: UnreadEvents,
}

impl PluginEventLog {
    /// Opens the log. If it cannot be opened, that is tried again with each event.
    pub(super) fn start(config: &Config) -> Self {
        let settings = Settings {
            dir: config.state.data_dir.join(DIRECTORY),
            max_bytes: config.events.max_bytes.get(),
            max_events: usize::try_from(config.events.max_events).unwrap_or(usize::MAX),
            first_number: 1,
        };
        Self::with(settings)
    }

    pub(super) fn with(settings: Settings) -> Self {
        let shared = Shared {
            settings,
            open: Mutex::default(),
            is_paused: AtomicBool::new(false),
            dropped: Mutex::default(),
            state: watch::Sender::default(),
        };
        let log = Self { shared: Arc::new(shared) };
        if let Err(error) = log.shared.open() {
            tracing::error!("the log of plugins' events fails, and they wait in the plugins: {error}");
        }
        log
    }

    /// How many events of a plugin the bound of the log removed before the agent had read them, since this supervisor started.
    pub(crate) fn dropped(&self, plugin: &str) -> u64 {
        self.shared.dropped.lock().get(plugin).copied().unwrap_or_default()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<LogState> {
        self.shared.state.subscribe()
    }

    /// Whether another supervisor may have it.
    pub(super) fn is_paused(&self) -> bool {
        self.shared.is_paused.load(Ordering::Acquire)
    }

    /// Records events of a plugin that are not known by their ids, and returns them: they are on the disk.
    ///
    /// # Errors
    /// Why not; the same events may be given again.
    pub(super) async fn record(
        &self,
        plugin: String,
        events: Vec<SourceEvent>,
    ) -> Result<Vec<SourceEvent>, String> {
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.record(&plugin, events)).await
    }

    /// Records what a subscriber has acknowledged; `None` if the log is not open.
    pub(crate) async fn acknowledge(
        &self,
        subscriber: &'static str,
        through: u64,
    ) -> Option<Result<u64, AcknowledgeError>> {
        let shared = Arc::clone(&self.shared);
        blocking(move || Some(shared.open.lock().log.as_mut()?.acknowledge(subscriber, through))).await
    }

    /// Closes the log, so that another supervisor can open it.
    pub(super) async fn close(&self) {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let mut open = shared.open.lock();
            shared.is_paused.store(true, Ordering::Release);
            *open = OpenLog::default();
        })
        .await;
        self.shared.state.send_modify(|state| state.reader = None);
    }

    /// Opens the log again.
    pub(super) async fn resume(&self) {
        let shared = Arc::clone(&self.shared);
        let opened = blocking(move || {
            shared.is_paused.store(false, Ordering::Release);
            shared.open()
        });
        if let Err(error) = opened.await {
            tracing::error!("the log of plugins' events fails, and they wait in the plugins: {error}");
        }
    }
}

impl fmt::Debug for PluginEventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginEventLog").field("dir", &self.shared.settings.dir).finish_non_exhaustive()
    }
}

impl Shared {
    fn open(&self) -> Result<(), String> {
        let mut open = self.open.lock();
        let result = self.opened(&mut open).map(drop);
        self.tell(&open, result.as_ref().err());
        result
    }

    /// The log, opened if it was not.
    fn opened<'o>(&self, open: &'o mut OpenLog) -> Result<&'o mut EventLog, String> {
        if self.is_paused.load(Ordering::Acquire) {
            return Err("another supervisor has the log, or this one ends".to_owned());
        }
        let OpenLog { log, known, unread } = open;
        Ok(match log {
            Some(log) => log,
            None => {
                let first_number = unix_ms(SystemTime::now());
                let settings = Settings { first_number, ..self.settings.clone() };
                let opened = EventLog::open(&settings).map_err(|error| error.to_string())?;
                for finding in opened.findings {
                    tracing::warn!("log of plugins' events: {finding}");
                }
                (*known, *unread) = (KnownIds::default(), UnreadEvents::default());
                for_each_kept(&opened.log.reader(), |number, plugin, id| {
                    known.insert(plugin, id);
                    unread.push(number, plugin);
                });
                log.insert(opened.log)
            }
        })
    }

    fn record(&self, plugin: &str, events: Vec<SourceEvent>) -> Result<Vec<SourceEvent>, String> {
        let mut open = self.open.lock();
        let result = self.append(&mut open, plugin, events);
        if result.is_err() {
            // Opened anew at the next attempt: its directory may have been removed.
            open.log = None;
        }
        self.tell(&open, result.as_ref().err());
        result
    }

    fn append(
        &self,
        open: &mut OpenLog,
        plugin: &str,
        events: Vec<SourceEvent>,
    ) -> Result<Vec<SourceEvent>, String> {
        self.opened(open)?;
        let OpenLog { log: Some(log), known, unread } = open else { return Err("the log is closed".into()) };
        let mut new: Vec<SourceEvent> = Vec::with_capacity(events.len());
        for event in events {
            if !known.contains(plugin, &event.id) && !new.iter().any(|other| other.id == event.id) {
                new.push(event);
            }
        }
        if new.is_empty() {
            return Ok(new);
        }
        let encoded: Vec<Vec<u8>> = new.iter().map(|event| encode(plugin, event)).collect();
        let first =
            log.append(&encoded).map_err(|error| format!("{}: {error}", self.settings.dir.display()))?;
        for (number, event) in (first..).zip(&new) {
            known.insert(plugin, &event.id);
            unread.push(number, plugin);
        }
        let reader = log.reader();
        self.count_dropped(unread.remove_before(reader.oldest(), reader.acknowledged(AGENT)));
        Ok(new)
    }

    fn count_dropped(&self, unread: BTreeMap<Arc<str>, u64>) {
        let mut dropped = self.dropped.lock();
        for (plugin, count) in unread {
            if dropped.len() < MAX_COUNTED_PLUGINS || dropped.contains_key(&plugin) {
                *dropped.entry(plugin).or_default() += count;
            }
        }
    }

    /// Tells subscribers of new events, and of problems.
    fn tell(&self, open: &OpenLog, problem: Option<&String>) {
        self.state.send_modify(|state| {
            state.problem = problem.cloned();
            state.reader = open.log.as_ref().map(EventLog::reader);
        });
    }
}

/// Calls a function with number, plugin and id of each event that is kept.
fn for_each_kept(reader: &EventReader, mut each: impl FnMut(u64, &str, &str)) {
    let mut after = reader.oldest().saturating_sub(1);
    while let Ok(page) = reader.page_after(after) {
        let Some((last, _)) = page.events.last() else { return };
        after = *last;
        for (number, bytes) in &page.events {
            let Ok(event) = HostEvent::decode(bytes.as_slice()) else { continue };
            if let (Some(plugin), Some(id)) = (event.fields.get(PLUGIN), event.fields.get(EVENT_ID)) {
                each(*number, plugin, id);
            }
        }
    }
}

fn encode(plugin: &str, event: &SourceEvent) -> Vec<u8> {
    let SourceEvent { id, topic, severity, summary, details, fields, at } = event;
    let own = [(PLUGIN, plugin), (TOPIC, topic), (EVENT_ID, id)];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), wire(Raw::from(value).line())));
    let fields = fields.iter().map(|(name, value)| (name.clone(), wire(value)));
    let event = HostEvent {
        number: 0,
        kind: KIND.to_owned(),
        severity: severity.as_str().to_owned(),
        summary: wire(summary),
        details: wire(details),
        time_unix_ms: i64::try_from(unix_ms(*at)).unwrap_or(i64::MAX),
        fields: fields.chain(own).collect(),
    };
    event.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use talon_plugin::EventSeverity;

    use super::*;

    fn event(id: &str) -> SourceEvent {
        SourceEvent {
            id: id.to_owned(),
            topic: "mail".to_owned(),
            severity: EventSeverity::Info,
            summary: "a mail".into(),
            details: "".into(),
            fields: BTreeMap::new(),
            at: SystemTime::now(),
        }
    }

    // Promises: EXT-180
    #[test]
    fn an_event_has_the_fields_that_are_documented() {
        let event = HostEvent::decode(encode("mail", &event("1")).as_slice()).expect("an event");
        let kind: talon_extensions::EventKind = event.kind.parse().expect("a documented kind");
        let fields: BTreeMap<&str, &str> =
            event.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(fields, BTreeMap::from([("event_id", "1"), ("plugin", "mail"), ("topic", "mail")]));
        assert!(kind.fields().iter().all(|name| fields.contains_key(name)), "{kind}");
    }

    // Promises: EXT-182
    #[tokio::test]
    async fn what_the_bound_removes_before_the_agent_reads_it_is_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings =
            Settings { dir: dir.path().join(DIRECTORY), max_bytes: 1 << 20, max_events: 16, first_number: 1 };
        let log = PluginEventLog::with(settings.clone());
        log.record("chat".into(), vec![event("0")]).await.expect("it is open");
        let read = log.subscribe().borrow().reader.clone().expect("it is open").last();
        log.acknowledge(AGENT, read).await.expect("it is open").expect("it was given out");
        log.record("chat".into(), vec![event("1")]).await.expect("it is open");
        // One after the other, so that the log is as large as it may be; also after it was opened anew.
        for id in 0..20 {
            log.record("mail".into(), vec![event(&id.to_string())]).await.expect("it is open");
        }
        log.close().await;
        log.resume().await;
        for id in 20..60 {
            log.record("mail".into(), vec![event(&id.to_string())]).await.expect("it is open");
        }
        let reader = log.subscribe().borrow().reader.clone().expect("it is open");
        assert_eq!(log.dropped("chat"), 1, "the other one was read");
        assert_eq!(log.dropped("mail"), reader.oldest() - (read + 2));
    }

    // Promises: EXT-150
    #[tokio::test]
    async fn each_id_of_a_plugin_is_in_the_log_once_also_after_it_was_opened_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = Settings {
            dir: dir.path().join(DIRECTORY),
            max_bytes: 1 << 20,
            max_events: 1000,
            first_number: 1,
        };
        let log = PluginEventLog::with(settings.clone());
        let ids = |recorded: Result<Vec<SourceEvent>, String>| -> Vec<String> {
            recorded.expect("it is open").into_iter().map(|event| event.id).collect()
        };
        let recorded = log.record("mail".into(), vec![event("1"), event("2"), event("1")]).await;
        assert_eq!(ids(recorded), ["1", "2"]);
        log.close().await;
        assert!(log.record("mail".into(), vec![event("3")]).await.is_err(), "it is closed");
        let log = PluginEventLog::with(settings);
        assert_eq!(ids(log.record("mail".into(), vec![event("2"), event("3")]).await), ["3"]);
        let recorded = log.record("chat".into(), vec![event("2")]).await;
        assert_eq!(ids(recorded), ["2"], "another plugin's ids are others");
        let state = log.subscribe();
        let reader = state.borrow().reader.clone().expect("it is open");
        assert_eq!(reader.last() - reader.oldest() + 1, 4);
    }
}
