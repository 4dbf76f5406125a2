//! Events about plugins, for subscribers: a bounded broadcast whose sender never waits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use talon_sanitize::{Raw, Sanitized};
use tokio::sync::broadcast;

use talon_plugin_config::name::PluginName;

/// How many events a slow subscriber may lag behind before it loses the oldest: a burst of a few calls and
/// state changes for each of a hundred plugins. A subscriber sees the loss as a gap in the sequence numbers.
pub const CAPACITY: usize = 4096;

/// The longest message of an event, and the longest field, in bytes; a longer one is cut.
pub const MAX_MESSAGE_BYTES: usize = 4096;

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// An instance went from one state to another: `from`, `to`, `reason`, and `deaths` within the restart window if there were any.
    StateChanged,
    /// A call ended; emitted by the dispatcher.
    CallFinished,
    /// A process ended: `exit`, `uptime_ms`, `planned`.
    PluginExited,
    /// A health check failed: `excused` says whether calls in flight excuse it.
    HealthFailed,
    /// A plugin's capabilities are known for the first time, or changed: `actions`.
    CapabilitiesChanged,
    /// The progress of a call, as its plugin reports it: `call_id`, `action`, `progress`, `total`.
    CallProgress,
    /// The declaration of an action differs from what was approved: `action`, `what`.
    ToolsChanged,
    /// A plugin lists other resources or prompts: `resources`, `prompts`.
    ListsChanged,
    /// A resource of a plugin changed that somebody follows: `uri`.
    ResourceUpdated,
    /// Another version of a plugin's script runs, as the plugin says: `script`, `sha256`, `loads`.
    ScriptLoaded,
    /// A version of a plugin's script does not run: `script`, `sha256` of the one that does, if one does, and `reason`.
    ScriptRefused,
    /// A script of a plugin is gone: `script`.
    ScriptRemoved,
    /// A plugin's processes were replaced without losing a call: `old_digest`, `new_digest`.
    PluginReplaced,
    /// The processes that should have replaced a plugin's did not become ready; the old ones keep serving:
    /// `reason`.
    ReplacementFailed,
    /// The configuration was reloaded: `changed`, `needs_restart`.
    ConfigReloaded,
    /// A configuration was refused; the previous one stays in force: `problems`, `reason`.
    ConfigRefused,
    /// A plugin was refused.
    Refused,
    /// A plugin's answers held too much control syntax; emitted by the dispatcher: `neutralised`, `reason`.
    Quarantined,
    /// A plugin logged more than it may: `dropped`.
    LogLinesDropped,
    /// A plugin told an event, which is recorded: `topic`, `event_id`, `severity`.
    SourceEvent,
    /// About the supervisor itself.
    Supervisor,
}

impl EventKind {
    /// The name as the host API shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StateChanged => "state_changed",
            Self::CallFinished => "call_finished",
            Self::PluginExited => "plugin_exited",
            Self::HealthFailed => "health_failed",
            Self::CapabilitiesChanged => "capabilities_changed",
            Self::CallProgress => "call_progress",
            Self::ToolsChanged => "tools_changed",
            Self::ListsChanged => "lists_changed",
            Self::ResourceUpdated => "resource_updated",
            Self::ScriptLoaded => "script_loaded",
            Self::ScriptRefused => "script_refused",
            Self::ScriptRemoved => "script_removed",
            Self::PluginReplaced => "plugin_replaced",
            Self::ReplacementFailed => "replacement_failed",
            Self::ConfigReloaded => "config_reloaded",
            Self::ConfigRefused => "config_refused",
            Self::Refused => "refused",
            Self::Quarantined => "quarantined",
            Self::LogLinesDropped => "log_lines_dropped",
            Self::SourceEvent => "source_event",
            Self::Supervisor => "supervisor",
        }
    }

    /// Whether every call emits such events; the others report changes of plugins.
    #[must_use]
    pub fn is_per_call(self) -> bool {
        matches!(self, Self::CallFinished | Self::CallProgress)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Counts up by one from 1; a gap means that this listener was too slow.
    pub sequence: u64,
    /// The time.
    pub at: SystemTime,
    /// The plugin it is about, if any.
    pub plugin: Option<PluginName>,
    /// The instance it is about, if any.
    pub instance: Option<u32>,
    /// What kind.
    pub kind: EventKind,
    /// One sentence of at most [`MAX_MESSAGE_BYTES`]; quoted text in it is sanitized.
    pub message: Sanitized,
    /// The same data for programs; [`EventKind`] lists the keys.
    pub fields: BTreeMap<&'static str, Sanitized>,
}

/// The sending end, shared by all emitters. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    /// All events.
    sender: broadcast::Sender<Arc<Event>>,
    /// All events except those of single calls.
    without_calls: broadcast::Sender<Arc<Event>>,
    sequence: Arc<Mutex<u64>>,
    lost: Arc<AtomicU64>,
}

impl Events {
    /// A sender without subscribers.
    #[must_use]
    pub fn new() -> Self {
        let (sender, without_calls) = (broadcast::Sender::new(CAPACITY), broadcast::Sender::new(CAPACITY));
        Self { sender, without_calls, sequence: Arc::default(), lost: Arc::default() }
    }

    /// All events from now on. A receiver that lags more than [`CAPACITY`] events behind gets
    /// `RecvError::Lagged` and continues with the oldest event that is still stored.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        // Under the lock, so that the subscriber misses no number after its first.
        let _sequence = self.sequence.lock();
        self.sender.subscribe()
    }

    /// All events except those of single calls ([`EventKind::is_per_call`]). For subscribers that live as
    /// long as the supervisor: an event without a subscriber is not built, and building one costs a call more
    /// than all its layers.
    #[must_use]
    pub fn subscribe_without_calls(&self) -> broadcast::Receiver<Arc<Event>> {
        let _sequence = self.sequence.lock();
        self.without_calls.subscribe()
    }

    /// Whether anybody gets the events of single calls, too.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// How many events were emitted, including those without a subscriber.
    #[must_use]
    pub fn emitted(&self) -> u64 {
        *self.sequence.lock()
    }

    /// Records how many events a subscriber lost because it lagged behind.
    pub fn record_lost(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// How many events subscribers lost, as recorded by them.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Emits an event. Never waits, with or without subscribers.
    pub fn emit(&self, event: NewEvent) {
        let NewEvent { plugin, instance, kind, message, fields } = event;
        // The lock is also held while sending, so that events arrive in the order of their numbers.
        let mut sequence = self.sequence.lock();
        *sequence += 1;
        let event =
            Event { sequence: *sequence, at: SystemTime::now(), plugin, instance, kind, message, fields };
        let event = Arc::new(event);
        // Errors only mean that there is no subscriber.
        if !kind.is_per_call() {
            let _ = self.without_calls.send(Arc::clone(&event));
        }
        let _ = self.sender.send(event);
    }

    /// Emits an event that is built only if there is a subscriber for its kind; it is counted in both cases.
    pub fn emit_if_subscribed(&self, kind: EventKind, event: impl FnOnce() -> NewEvent) {
        {
            let mut sequence = self.sequence.lock();
            let heard = self.sender.receiver_count() > 0
                || !kind.is_per_call() && self.without_calls.receiver_count() > 0;
            if !heard {
                *sequence += 1;
                return;
            }
        }
        // Not under the lock: building sanitizes texts, and other emitters should not wait for that.
        self.emit(event());
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

/// An event to be passed to [`Events::emit`].
#[derive(Debug, Clone)]
pub struct NewEvent {
    plugin: Option<PluginName>,
    instance: Option<u32>,
    kind: EventKind,
    message: Sanitized,
    fields: BTreeMap<&'static str, Sanitized>,
}

impl NewEvent {
    /// An event that is not about a plugin. The message may quote any text: it is sanitized here.
    #[must_use]
    pub fn new<'t>(kind: EventKind, message: impl Into<Raw<'t>>) -> Self {
        let message = message.into().line_within(MAX_MESSAGE_BYTES);
        Self { plugin: None, instance: None, kind, message, fields: BTreeMap::new() }
    }

    /// About this plugin.
    #[must_use]
    pub fn plugin(mut self, plugin: &PluginName) -> Self {
        self.plugin = Some(plugin.clone());
        self
    }

    /// About this instance of it.
    #[must_use]
    pub fn instance(mut self, instance: u32) -> Self {
        self.instance = Some(instance);
        self
    }

    /// Adds a field for programs, of at most [`MAX_MESSAGE_BYTES`]; sanitized here as well.
    #[must_use]
    pub fn field(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.fields.insert(key, Raw::of(value).line_within(MAX_MESSAGE_BYTES));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: LIFE-30
    #[test]
    fn sequence_numbers_have_no_gap_for_a_fast_listener() {
        let events = Events::new();
        let mut listener = events.subscribe();
        let others: Vec<_> = (0..4)
            .map(|_| {
                let events = events.clone();
                std::thread::spawn(move || {
                    for _ in 0..100 {
                        events.emit(NewEvent::new(EventKind::Supervisor, "x"));
                    }
                })
            })
            .collect();
        for other in others {
            other.join().unwrap();
        }
        for expected in 1..=400 {
            assert_eq!(listener.try_recv().unwrap().sequence, expected);
        }
    }

    // Promises: LIFE-30
    #[test]
    fn a_slow_listener_loses_the_oldest_and_blocks_nobody() {
        let events = Events::new();
        let mut listener = events.subscribe();
        for _ in 0..CAPACITY + 10 {
            events.emit(NewEvent::new(EventKind::Supervisor, "x"));
        }
        assert!(matches!(listener.try_recv(), Err(broadcast::error::TryRecvError::Lagged(10))));
        assert_eq!(listener.try_recv().unwrap().sequence, 11);
    }

    #[test]
    fn what_nobody_hears_is_not_made_and_counts() {
        let events = Events::new();
        let finished = || NewEvent::new(EventKind::CallFinished, "x");
        let never = || panic!("such events have no subscriber");
        events.emit_if_subscribed(EventKind::CallFinished, never);
        let mut seldom = events.subscribe_without_calls();
        events.emit_if_subscribed(EventKind::CallFinished, never);
        events.emit_if_subscribed(EventKind::Supervisor, || NewEvent::new(EventKind::Supervisor, "x"));
        let mut all = events.subscribe();
        events.emit_if_subscribed(EventKind::CallFinished, finished);
        events.emit(finished());
        assert_eq!(events.emitted(), 5);
        assert_eq!(seldom.try_recv().unwrap().sequence, 3);
        assert!(seldom.try_recv().is_err(), "call events go to other subscribers");
        assert_eq!(all.try_recv().unwrap().sequence, 4);
        assert_eq!(all.try_recv().unwrap().sequence, 5);
    }

    #[test]
    fn a_message_is_bounded() {
        let events = Events::new();
        let mut listener = events.subscribe();
        events.emit(NewEvent::new(EventKind::Supervisor, "ä".repeat(MAX_MESSAGE_BYTES)));
        assert!(listener.try_recv().unwrap().message.len() <= MAX_MESSAGE_BYTES + '…'.len_utf8());
    }
}
