//! Where events of plugins go, and what is counted of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_plugin_config::name::PluginName;
use talon_sanitize::Sanitized;
use tokio::time::Instant;

use super::event_rate::EventRate;
use super::source_event::SourceEvent;

/// What the operator lets a plugin tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// How many events a minute; as many may come at once.
    pub per_minute: u32,
}

/// What became of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedEvents {
    /// How many are new.
    pub new: u64,
    /// How many were known by their ids.
    pub repeated: u64,
}

/// Takes the events of plugins.
pub trait EventSink: Send + Sync {
    /// What the operator lets a plugin tell; `None`: nothing, or nobody records it now. Asked again and again, so that a reload counts.
    fn limits(&self, plugin: &PluginName) -> Option<EventLimits>;

    /// Records events. When it returns without an error they are on the disk, each id once.
    fn record(
        &self,
        plugin: &PluginName,
        events: Vec<SourceEvent>,
    ) -> BoxFuture<'static, Result<RecordedEvents, Sanitized>>;
}

/// The registry's sink, once it has one.
pub(crate) type SinkSlot = Arc<OnceLock<Arc<dyn EventSink>>>;

/// What is counted of the events of one plugin. Belongs to the plugin: shared with predecessors and successors.
#[derive(Debug, Default)]
pub struct EventCounters {
    recorded: AtomicU64,
    repeated: AtomicU64,
    refused: AtomicU64,
    acknowledged: AtomicU64,
    waiting: AtomicBool,
    problem: ArcSwapOption<Sanitized>,
    /// Of all its processes together, also of those that come after: a restart gives no more.
    rate: Mutex<Option<EventRate>>,
}

impl EventCounters {
    /// How many are on the disk.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// How many came again.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// How many were not within the limits.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// How many the plugin knows to be settled: taken, known, or refused.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Whether the plugin tells more than it may, or the disk refuses.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Why its events are not read at present.
    #[must_use]
    pub fn problem(&self) -> Option<Sanitized> {
        self.problem.load().as_deref().cloned()
    }

    /// Takes one event of the rate; or how long it takes until there may be one.
    pub(super) fn take(&self, limits: EventLimits) -> Result<(), Duration> {
        let now = Instant::now();
        let mut rate = self.rate.lock();
        rate.get_or_insert_with(|| EventRate::new(limits.per_minute, now)).take(limits.per_minute, now)
    }

    pub(super) fn set_problem(&self, problem: Option<Sanitized>) {
        self.problem.store(problem.map(Arc::new));
    }

    pub(super) fn add(&self, recorded: RecordedEvents, refused: u64) {
        self.recorded.fetch_add(recorded.new, Ordering::Relaxed);
        self.repeated.fetch_add(recorded.repeated, Ordering::Relaxed);
        self.refused.fetch_add(refused, Ordering::Relaxed);
    }

    pub(super) fn add_acknowledged(&self, count: u64) {
        self.acknowledged.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn set_waiting(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::Relaxed);
    }
}
