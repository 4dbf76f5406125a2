//! The door: every call to a plugin, from whomever it comes, goes through here and takes that plugin's guard stack.
//!
//! This is the one place where `talon-plugin` and `talon-guard` meet: `stack` assembles the layers,
//! `directory` shows plugins to `resolve`, `innermost` hands calls to instances. The supervisor's own actions (`core`) are
//! called like a plugin's, and take a stack too.

mod apart;
pub mod capabilities;
mod core;
mod counters;
mod current;
mod directory;
mod finished;
mod innermost;
mod numbers;
mod recent;
mod stack;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use talon_guard::{Call, Guarded, Quarantine, Quarantined, RawStore, Stack, TraceLayer};
use talon_plugin::name::{PluginName, RESERVED_NAME};
use talon_plugin::spec::PluginSpec;
use talon_plugin::{Capability, EventKind, Events, NewEvent, Plugin, Registry};
use talon_proto::host::PluginCounters;
use talon_proto::plugin::PluginCapabilities;
use talon_sanitize::{Sanitizer, SettingsError};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use crate::config::{CallPolicy, Config};
use apart::Apart;
use counters::Counters;
pub use counters::{ByOutcome, OTHER_ACTION, OUTCOMES};
use current::Current;
use directory::OnePlugin;
use finished::{Finished, Known};
use innermost::ToPlugin;
pub use numbers::Numbers;
use stack::Gauges;

/// Calls that wait for plugins on their first start, over all plugins. They are in no plugin's queue yet; 256 is a
/// burst of several agents right after a boot. Further ones are refused at once, retryable.
const MAX_FIRST_WAITERS: usize = 256;

/// The door is closing: no new call is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the supervisor is draining")]
pub struct Draining;

/// Guards the calls to all plugins of one registry.
pub struct Door {
    registry: Registry,
    /// Exchanged as a whole under the lock of `entries`, so that no stack is built of two configurations.
    current: ArcSwap<Current>,
    events: Events,
    entries: RwLock<HashMap<String, Arc<Entry>>>,
    in_flight: TaskTracker,
    draining: AtomicBool,
    first_waiters: Semaphore,
}

/// One plugin's stack and its numbers.
struct Entry {
    /// What the stack was built from; another one means that it is stale.
    spec: Option<Arc<PluginSpec>>,
    /// What the stack was built with.
    policy: CallPolicy,
    /// The configuration asks for another stack.
    stale: AtomicBool,
    stack: Stack,
    gauges: Gauges,
    counters: Arc<Counters>,
    quarantine: Quarantine,
    /// What of the quarantine was not told yet.
    news: Mutex<watch::Receiver<Option<Quarantined>>>,
    shown: Mutex<Option<Shown>>,
}

/// What a plugin declared, and what clients see of it. Made once for each declaration: a hostile one of some megabytes
/// keeps a thread busy for a while, and whoever may look may look often.
struct Shown {
    declared: Arc<Capability>,
    guarded: Arc<PluginCapabilities>,
}

/// A plugin's calls at this moment.
#[derive(Debug, Clone, Default)]
pub struct Gauge {
    /// Calls that run.
    pub in_flight: usize,
    /// Calls that wait for a place.
    pub waiting: usize,
    /// `closed`, `open` or `half_open`.
    pub breaker: &'static str,
    /// Set apart because its answers kept holding control syntax.
    pub quarantined: bool,
    /// Since the supervisor started.
    pub counters: PluginCounters,
}

impl Door {
    /// A door to the plugins of `registry`, with the limits of `config`.
    #[must_use]
    pub fn new(registry: Registry, config: Arc<Config>, sanitizer: Sanitizer, events: Events) -> Self {
        Self {
            current: ArcSwap::from_pointee(Current::new(config, sanitizer, &registry)),
            registry,
            events,
            entries: RwLock::default(),
            in_flight: TaskTracker::new(),
            draining: AtomicBool::new(false),
            first_waiters: Semaphore::new(MAX_FIRST_WAITERS),
        }
    }

    /// From now on calls are held to the limits of another configuration. Stacks whose limits are the same stay, with their
    /// queues and breakers; calls under way end as they began. What the guard keeps (texts to read on in, answers as they
    /// came, fingerprints) stays unless its own limits changed.
    ///
    /// # Errors
    /// [`SettingsError`] if the operator's patterns are not taken; nothing has changed then.
    pub fn adopt(&self, config: Arc<Config>) -> Result<(), SettingsError> {
        let entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.load_full();
        let next = Current::after(&before, config, &self.registry)?;
        let same_stores = Arc::ptr_eq(&before.shared, &next.shared);
        for (name, entry) in entries.iter() {
            let same = |spec: &Arc<PluginSpec>| next.config.call_policy(name, spec) == entry.policy;
            if !(same_stores && entry.spec.as_ref().is_some_and(same)) {
                entry.stale.store(true, Ordering::Release);
            }
        }
        self.current.store(Arc::new(next));
        Ok(())
    }

    /// The configuration that calls are held to.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.current.load().config)
    }

    /// Runs one call. Every outcome is a guarded answer; dropping the future cancels the call down to the plugin.
    ///
    /// # Errors
    /// [`Draining`] once [`Door::drain`] was called: the call was not begun, and another supervisor may take it.
    pub async fn call(&self, call: Call) -> Result<Guarded, Draining> {
        // Counted before it is asked whether the door is open, so that drain sees every call that got through.
        let _in_flight = self.in_flight.token();
        if self.draining.load(Ordering::SeqCst) {
            return Err(Draining);
        }
        let current = self.current.load_full();
        if *call.plugin == *RESERVED_NAME
            && let Some(core) = &current.core
        {
            return Ok(self.through(&core.stack, &core.counters, call, None).await);
        }
        // What is not granted is refused before anybody looks whether it is there: neither the answer nor the time it takes
        // tells that.
        let granted = call.granted.as_ref().is_none_or(|granted| granted.covers(&call.plugin, &call.action));
        let plugin = self.registry.get(&call.plugin).filter(|_| granted);
        let entry = plugin.as_ref().map(|plugin| self.entry(plugin));
        let entry = entry.as_deref().unwrap_or(&current.nowhere);
        let answer = self.through(&entry.stack, &entry.counters, call, plugin.as_ref()).await;
        if let Some(plugin) = &plugin {
            self.tell_of_quarantine(entry, plugin);
        }
        Ok(answer)
    }

    /// Runs a call through a stack, counts it and tells how it ended.
    async fn through(
        &self,
        stack: &Stack,
        counters: &Counters,
        call: Call,
        plugin: Option<&Plugin>,
    ) -> Guarded {
        let known = Known::of(&call);
        let counted = counters.begin(&known, plugin);
        let mut finished = Finished::watch(&self.events, &known, plugin.map(Plugin::name));
        if let Some(plugin) = plugin {
            self.first_words(plugin, &call).await;
        }
        let answer = Apart { call: stack.call(call) }.await;
        counted.end(&answer);
        finished.ended(&answer);
        answer
    }

    /// Waits for a plugin on its first start to tell what it offers, as calls wait for one that restarts. The
    /// call's time runs meanwhile.
    async fn first_words(&self, plugin: &Plugin, call: &Call) {
        if plugin.capability().is_some() {
            return;
        }
        // As many as may queue for a plugin; the others are told at once that it is starting.
        let Ok(_waiting) = self.first_waiters.try_acquire() else { return };
        let timeout = self.policy(plugin).timeouts.timeout_of(call);
        let patience = timeout.min(plugin.spec().lifecycle.ready_wait);
        // Whatever comes of it, resolve looks and says.
        let _ = tokio::time::timeout_at(call.accepted + patience, plugin.settled()).await;
    }

    /// Closes a plugin's breaker and lifts its quarantine: an operator has just started the plugin anew, and what they
    /// know is about the time before.
    pub fn forget_faults(&self, plugin: &Plugin) {
        let entry = self.entry(plugin);
        entry.gauges.breaker.reset();
        entry.quarantine.lift();
    }

    /// The plugins that are set apart, and how much control syntax brought each there: for a supervisor that takes over, which
    /// must not take them back.
    #[must_use]
    pub fn quarantined(&self) -> Vec<(PluginName, u32)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let apart = |(name, entry): (&String, &Arc<Entry>)| {
            let neutralised = entry.quarantine.quarantined()?.neutralised;
            Some((PluginName::new(name).ok()?, neutralised))
        };
        entries.iter().filter_map(apart).collect()
    }

    /// Sets a plugin apart that another supervisor had set apart. It was told then, and is not told again. `false`: there is
    /// no plugin of that name.
    pub fn quarantine(&self, name: &PluginName, neutralised: u32) -> bool {
        let Some(plugin) = self.registry.get(name.as_str()) else { return false };
        let entry = self.entry(&plugin);
        let mut news = entry.news.lock().unwrap_or_else(PoisonError::into_inner);
        entry.quarantine.impose(neutralised);
        news.mark_unchanged();
        true
    }

    /// The sanitizer that all stacks share.
    #[must_use]
    pub fn sanitizer(&self) -> Sanitizer {
        self.current.load().shared.sanitizer.clone()
    }

    /// Answers as they came, for administrators.
    #[must_use]
    pub fn raw_answers(&self) -> RawStore {
        self.current.load().shared.raw.clone()
    }

    /// How much of them is kept at most, in bytes.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.current.load().config.guard.keep_raw_bytes.get()
    }

    /// What the supervisor itself offers, and the numbers of its calls; `None` if there is nothing.
    #[must_use]
    pub fn core(&self) -> Option<(Arc<PluginCapabilities>, PluginCounters)> {
        let current = self.current.load();
        current.core.as_ref().map(|core| (Arc::clone(&core.capabilities), core.counters.read()))
    }

    /// How a plugin's calls are.
    #[must_use]
    pub fn gauge(&self, plugin: &Plugin) -> Gauge {
        let entry = self.entry(plugin);
        Gauge {
            in_flight: entry.gauges.admission.in_flight(),
            waiting: entry.gauges.admission.waiting(),
            breaker: entry.gauges.breaker.state().word(),
            quarantined: entry.quarantine.is_quarantined(),
            counters: entry.counters.read(),
        }
    }

    /// What clients see of what a plugin declared.
    #[must_use]
    pub fn capabilities(&self, plugin: &Plugin, declared: &Arc<Capability>) -> Arc<PluginCapabilities> {
        let entry = self.entry(plugin);
        let mut shown = entry.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = shown.as_ref().filter(|shown| Arc::ptr_eq(&shown.declared, declared)) {
            return Arc::clone(&shown.guarded);
        }
        let guarded = Arc::new(capabilities::guarded(&declared.raw, &self.sanitizer()));
        *shown = Some(Shown { declared: Arc::clone(declared), guarded: Arc::clone(&guarded) });
        guarded
    }

    /// The limits of a plugin's calls.
    #[must_use]
    pub fn policy(&self, plugin: &Plugin) -> CallPolicy {
        self.config().call_policy(plugin.name().as_str(), &plugin.spec())
    }

    /// Tells, once, that a plugin has just been set apart. A call that ends sees it, because only the answer to a call
    /// can bring it about.
    fn tell_of_quarantine(&self, entry: &Entry, plugin: &Plugin) {
        if !entry.quarantine.is_quarantined() {
            return;
        }
        let mut news = entry.news.lock().unwrap_or_else(PoisonError::into_inner);
        if !news.has_changed().unwrap_or_default() {
            return;
        }
        let Some(quarantined) = *news.borrow_and_update() else { return };
        let name = plugin.name();
        let count = quarantined.neutralised;
        let message = format!(
            "quarantined: {count} places of control syntax in its answers; look at `talon events`, then \
             `talon plugin start {name}` takes it back"
        );
        tracing::warn!(plugin = %name, neutralised = count, "{message}");
        self.events
            .emit(NewEvent::new(EventKind::Quarantined, message).plugin(name).field("neutralised", count));
    }

    /// Takes no new call and waits for those in flight, at most this long. Gives how many are left.
    pub async fn drain(&self, grace: Duration) -> usize {
        self.draining.store(true, Ordering::SeqCst);
        self.in_flight.close();
        // Those that are left are ended by the plugins' own stop.
        let _ = tokio::time::timeout(grace, self.in_flight.wait()).await;
        self.in_flight.len()
    }

    /// Takes new calls again after a [`drain`](Self::drain).
    pub fn resume(&self) {
        self.in_flight.reopen();
        self.draining.store(false, Ordering::SeqCst);
    }

    /// Whether new calls are refused.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// The stack of a plugin, built at its first call and again when its spec is another one or the configuration asks for it.
    fn entry(&self, plugin: &Plugin) -> Arc<Entry> {
        let spec = plugin.spec();
        let name = plugin.name().as_str();
        let fresh = |entry: &&Arc<Entry>| {
            let built_from = entry.spec.as_ref();
            built_from.is_some_and(|built| Arc::ptr_eq(built, &spec)) && !entry.stale.load(Ordering::Acquire)
        };
        if let Some(entry) =
            self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).filter(fresh)
        {
            return Arc::clone(entry);
        }
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have built it meanwhile: two stacks would be two queues.
        if let Some(entry) = entries.get(name).filter(fresh) {
            return Arc::clone(entry);
        }
        let current = self.current.load();
        let policy = current.config.call_policy(name, &spec);
        // The numbers outlive a change of the spec; the entries of plugins that are gone do not.
        let before = entries.get(name);
        let counters = before.map(|entry| Arc::clone(&entry.counters)).unwrap_or_default();
        let quarantine = match before {
            Some(entry) if entry.policy.quarantine == policy.quarantine => entry.quarantine.clone(),
            before => {
                let quarantine = Quarantine::new(name, policy.quarantine);
                if let Some(quarantined) = before.and_then(|entry| entry.quarantine.quarantined()) {
                    quarantine.impose(quarantined.neutralised);
                }
                quarantine
            }
        };
        entries.retain(|name, _| self.registry.get(name).is_some());
        let directory = OnePlugin::new(plugin.clone(), self.registry.clone());
        let innermost = ToPlugin { executor: plugin.executor() };
        let trace = TraceLayer::new(name);
        let (stack, gauges) =
            stack::build(trace, policy.clone(), &current.shared, quarantine.clone(), directory, innermost);
        let news = Mutex::new(quarantine.subscribe());
        let entry = Arc::new(Entry {
            spec: Some(spec),
            policy,
            stale: AtomicBool::new(false),
            stack,
            gauges,
            counters,
            quarantine,
            news,
            shown: Mutex::default(),
        });
        entries.insert(name.to_owned(), Arc::clone(&entry));
        entry
    }
}
