//! The dispatcher: every call to a plugin, from any client, goes through here and takes that plugin's guard
//! stack.
//!
//! This is the only place where `talon-plugin` and `talon-guard` meet. `stack` assembles the layers,
//! `directory` presents plugins to `resolve`, and `plugin_service` sends calls to instances. The supervisor's
//! own actions (`core`) are called like a plugin's and have a stack, too.

mod call_finished;
pub mod capabilities;
mod configured_stacks;
mod core;
mod counters;
mod directory;
mod latency_window;
mod offload;
mod plugin_service;
mod stack;
mod statistics;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use talon_guard::{Call, Guarded, Quarantine, QuarantineInfo, RawStore, Stack, TraceLayer};
use talon_plugin::{EventKind, Events, NewEvent, Plugin, Registry};
use talon_plugin_client::Capability;
use talon_plugin_config::name::{PluginName, RESERVED_NAME};
use talon_plugin_config::spec::PluginSpec;
use talon_proto::host::PluginCounters;
use talon_proto::plugin::PluginCapabilities;
use talon_sanitize::{Sanitizer, SettingsError};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use crate::config::{CallPolicy, Config};
use call_finished::{CallFinishedEvent, CallSummary};
use configured_stacks::ConfiguredStacks;
use counters::Counters;
pub use counters::{OTHER_ACTION, OUTCOMES, OutcomeCounts};
use directory::PluginDirectory;
use offload::Offload;
use plugin_service::PluginService;
use stack::StackGauges;
pub use statistics::CallStatistics;

/// How many calls may wait for plugins on their first start, over all plugins. They are not in a plugin's
/// queue yet. 256 is a burst of several agents right after a boot. Further calls are refused at once and are
/// retryable.
const MAX_FIRST_WAITERS: usize = 256;

/// The dispatcher is draining and accepts no new calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the supervisor is draining")]
pub struct DrainingError;

/// Dispatches calls to all plugins of one registry, through their guard stacks.
pub struct Dispatcher {
    registry: Registry,
    /// Replaced as a whole under the lock of `entries`, so that no stack mixes two configurations.
    current: ArcSwap<ConfiguredStacks>,
    events: Events,
    entries: RwLock<HashMap<String, Arc<StackEntry>>>,
    in_flight: TaskTracker,
    draining: AtomicBool,
    first_waiters: Semaphore,
}

/// One plugin's stack with its counters.
struct StackEntry {
    /// The spec that the stack was built from. If the plugin's spec differs, the stack is stale.
    spec: Option<Arc<PluginSpec>>,
    /// The policy that the stack was built with.
    policy: CallPolicy,
    /// The current configuration needs another stack.
    stale: AtomicBool,
    stack: Stack,
    gauges: StackGauges,
    counters: Arc<Counters>,
    quarantine: Quarantine,
    /// Changes of the quarantine that were not reported yet.
    quarantine_updates: Mutex<watch::Receiver<Option<QuarantineInfo>>>,
    capabilities: Mutex<Option<CachedCapabilities>>,
}

/// A declaration and its sanitized form for clients. Cached per declaration: sanitizing a hostile one of some
/// megabytes keeps a thread busy for a while, and clients may ask often.
struct CachedCapabilities {
    declared: Arc<Capability>,
    sanitized: Arc<PluginCapabilities>,
}

/// The current load of a plugin and its counters.
#[derive(Debug, Clone, Default)]
pub struct CallGauge {
    /// Running calls.
    pub in_flight: usize,
    /// Queued calls.
    pub waiting: usize,
    /// `closed`, `open` or `half_open`.
    pub breaker: &'static str,
    /// Quarantined, because its answers kept containing control syntax.
    pub quarantined: bool,
    /// Counters since the supervisor started.
    pub counters: PluginCounters,
}

impl Dispatcher {
    /// A dispatcher for the plugins of `registry`, with the limits of `config`.
    #[must_use]
    pub fn new(registry: Registry, config: Arc<Config>, sanitizer: Sanitizer, events: Events) -> Self {
        Self {
            current: ArcSwap::from_pointee(ConfiguredStacks::new(config, sanitizer, &registry)),
            registry,
            events,
            entries: RwLock::default(),
            in_flight: TaskTracker::new(),
            draining: AtomicBool::new(false),
            first_waiters: Semaphore::new(MAX_FIRST_WAITERS),
        }
    }

    /// Applies the limits of another configuration from now on. Stacks whose limits did not change are kept,
    /// with their queues and breakers; calls in flight finish under the old limits. Stored data (pages of
    /// long texts, raw answers, taint fingerprints) is kept unless its limits changed.
    ///
    /// # Errors
    /// [`SettingsError`] if the operator's patterns are invalid; then nothing changes.
    pub fn apply_config(&self, config: Arc<Config>) -> Result<(), SettingsError> {
        let entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.load_full();
        let next = ConfiguredStacks::successor(&before, config, &self.registry)?;
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

    /// The configuration whose limits apply.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.current.load().config)
    }

    /// Executes one call. Every outcome is a guarded answer. Dropping the future cancels the call, also in
    /// the plugin.
    ///
    /// # Errors
    /// [`Draining`] once [`Door::drain`] was called: the call was not started, and another supervisor may
    /// take it.
    pub async fn call(&self, call: Call) -> Result<Guarded, DrainingError> {
        // The token is taken before the check, so that drain counts every call that passed it.
        let _in_flight = self.in_flight.token();
        if self.draining.load(Ordering::SeqCst) {
            return Err(DrainingError);
        }
        let current = self.current.load_full();
        if *call.plugin == *RESERVED_NAME
            && let Some(core) = &current.core
        {
            return Ok(self.run(&core.stack, &core.counters, call, None).await);
        }
        // Calls that are not granted are refused before the lookup, so that neither the answer nor its timing
        // reveals whether the plugin exists.
        let granted = call.granted.as_ref().is_none_or(|granted| granted.covers(&call.plugin, &call.action));
        let plugin = self.registry.get(&call.plugin).filter(|_| granted);
        let entry = plugin.as_ref().map(|plugin| self.entry(plugin));
        let entry = entry.as_deref().unwrap_or(&current.unknown_plugin);
        let answer = self.run(&entry.stack, &entry.counters, call, plugin.as_ref()).await;
        if let Some(plugin) = &plugin {
            self.report_quarantine(entry, plugin);
        }
        Ok(answer)
    }

    /// Runs a call through a stack, counts it and emits its event.
    async fn run(&self, stack: &Stack, counters: &Counters, call: Call, plugin: Option<&Plugin>) -> Guarded {
        let known = CallSummary::of(&call);
        let counted = counters.begin(&known, plugin);
        let mut finished = CallFinishedEvent::watch(&self.events, &known, plugin.map(Plugin::name));
        if let Some(plugin) = plugin {
            self.wait_for_capabilities(plugin, &call).await;
        }
        let answer = Offload { call: stack.call(call) }.await;
        counted.finish(&answer);
        finished.set_result(&answer);
        answer
    }

    /// Waits for a plugin on its first start to declare its capabilities, as calls wait for a plugin that
    /// restarts. The time counts towards the call's timeout.
    async fn wait_for_capabilities(&self, plugin: &Plugin, call: &Call) {
        if plugin.capability().is_some() {
            return;
        }
        // At most this many calls wait, as in a plugin's queue. The others learn at once that the plugin is
        // starting.
        let Ok(_waiting) = self.first_waiters.try_acquire() else { return };
        let timeout = self.policy(plugin).timeouts.timeout_of(call);
        let patience = timeout.min(plugin.spec().lifecycle.ready_wait);
        // The result does not matter: resolve checks the plugin's state.
        let _ = tokio::time::timeout_at(call.accepted + patience, plugin.settled()).await;
    }

    /// Closes a plugin's breaker and lifts its quarantine: an operator has just restarted the plugin, so
    /// earlier faults no longer count.
    pub fn reset_faults(&self, plugin: &Plugin) {
        let entry = self.entry(plugin);
        entry.gauges.breaker.reset();
        entry.quarantine.lift();
    }

    /// The quarantined plugins, each with the amount of control syntax that caused it: for a supervisor that
    /// takes over and must keep them in quarantine.
    #[must_use]
    pub fn quarantined(&self) -> Vec<(PluginName, u32)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let apart = |(name, entry): (&String, &Arc<StackEntry>)| {
            let neutralised = entry.quarantine.quarantined()?.neutralised;
            Some((PluginName::new(name).ok()?, neutralised))
        };
        entries.iter().filter_map(apart).collect()
    }

    /// Quarantines a plugin that the previous supervisor had quarantined. That one reported it, so it is not
    /// reported again. Returns `false` if there is no plugin of that name.
    pub fn quarantine(&self, name: &PluginName, neutralised: u32) -> bool {
        let Some(plugin) = self.registry.get(name.as_str()) else { return false };
        let entry = self.entry(&plugin);
        let mut news = entry.quarantine_updates.lock().unwrap_or_else(PoisonError::into_inner);
        entry.quarantine.impose(neutralised);
        news.mark_unchanged();
        true
    }

    /// The sanitizer shared by all stacks.
    #[must_use]
    pub fn sanitizer(&self) -> Sanitizer {
        self.current.load().shared.sanitizer.clone()
    }

    /// The store of raw (unsanitized) answers, for administrators.
    #[must_use]
    pub fn raw_answers(&self) -> RawStore {
        self.current.load().shared.raw.clone()
    }

    /// The size limit of that store, in bytes.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.current.load().config.guard.keep_raw_bytes.get()
    }

    /// The supervisor's own capabilities and the counters of their calls; `None` if it offers no actions.
    #[must_use]
    pub fn core(&self) -> Option<(Arc<PluginCapabilities>, PluginCounters)> {
        let current = self.current.load();
        current.core.as_ref().map(|core| (Arc::clone(&core.capabilities), core.counters.read()))
    }

    /// The current load of a plugin and its counters.
    #[must_use]
    pub fn gauge(&self, plugin: &Plugin) -> CallGauge {
        let entry = self.entry(plugin);
        CallGauge {
            in_flight: entry.gauges.admission.in_flight(),
            waiting: entry.gauges.admission.waiting(),
            breaker: entry.gauges.breaker.state().as_str(),
            quarantined: entry.quarantine.is_quarantined(),
            counters: entry.counters.read(),
        }
    }

    /// The sanitized form of a plugin's declaration, for clients.
    #[must_use]
    pub fn capabilities(&self, plugin: &Plugin, declared: &Arc<Capability>) -> Arc<PluginCapabilities> {
        let entry = self.entry(plugin);
        let mut shown = entry.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = shown.as_ref().filter(|shown| Arc::ptr_eq(&shown.declared, declared)) {
            return Arc::clone(&shown.sanitized);
        }
        let guarded = Arc::new(capabilities::sanitize(&declared.raw, &self.sanitizer()));
        *shown = Some(CachedCapabilities { declared: Arc::clone(declared), sanitized: Arc::clone(&guarded) });
        guarded
    }

    /// The limits of calls to a plugin.
    #[must_use]
    pub fn policy(&self, plugin: &Plugin) -> CallPolicy {
        self.config().call_policy(plugin.name().as_str(), &plugin.spec())
    }

    /// The largest arguments that any plugin accepts.
    #[must_use]
    pub fn largest_arguments(&self) -> usize {
        let config = self.config();
        let of_plugin =
            |plugin: &Plugin| config.call_policy(plugin.name().as_str(), &plugin.spec()).max_argument_bytes;
        let defaults = &config.plugins.tools.defaults;
        let of_others = defaults.max_argument_bytes.unwrap_or(config.guard.max_argument_bytes);
        let plugins = self.registry.list();
        plugins.iter().map(of_plugin).chain([of_others.as_usize()]).max().unwrap_or_default()
    }

    /// Reports a new quarantine once. It runs at the end of each call, because only an answer can cause a
    /// quarantine.
    fn report_quarantine(&self, entry: &StackEntry, plugin: &Plugin) {
        if !entry.quarantine.is_quarantined() {
            return;
        }
        let mut news = entry.quarantine_updates.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Stops accepting calls and waits for those in flight, for at most `grace`. Returns how many are still
    /// running.
    pub async fn drain(&self, grace: Duration) -> usize {
        self.draining.store(true, Ordering::SeqCst);
        self.in_flight.close();
        // Stopping the plugins ends the remaining calls.
        let _ = tokio::time::timeout(grace, self.in_flight.wait()).await;
        self.in_flight.len()
    }

    /// Accepts calls again after a [`drain`](Self::drain).
    pub fn resume(&self) {
        self.in_flight.reopen();
        self.draining.store(false, Ordering::SeqCst);
    }

    /// Whether new calls are refused.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// The stack of a plugin. It is built at the first call, and rebuilt when the spec or the configuration
    /// has changed.
    fn entry(&self, plugin: &Plugin) -> Arc<StackEntry> {
        let spec = plugin.spec();
        let name = plugin.name().as_str();
        let fresh = |entry: &&Arc<StackEntry>| {
            let built_from = entry.spec.as_ref();
            built_from.is_some_and(|built| Arc::ptr_eq(built, &spec)) && !entry.stale.load(Ordering::Acquire)
        };
        if let Some(entry) =
            self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).filter(fresh)
        {
            return Arc::clone(entry);
        }
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        // Another call may have built it meanwhile. A second stack would mean a second queue.
        if let Some(entry) = entries.get(name).filter(fresh) {
            return Arc::clone(entry);
        }
        let current = self.current.load();
        let policy = current.config.call_policy(name, &spec);
        // The counters survive a change of the spec; entries of removed plugins are deleted.
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
        let directory = PluginDirectory::new(plugin.clone(), self.registry.clone());
        let innermost = PluginService { executor: plugin.executor() };
        let trace = TraceLayer::new(name);
        let (stack, gauges) =
            stack::build(trace, policy.clone(), &current.shared, quarantine.clone(), directory, innermost);
        let news = Mutex::new(quarantine.subscribe());
        let entry = Arc::new(StackEntry {
            spec: Some(spec),
            policy,
            stale: AtomicBool::new(false),
            stack,
            gauges,
            counters,
            quarantine,
            quarantine_updates: news,
            capabilities: Mutex::default(),
        });
        entries.insert(name.to_owned(), Arc::clone(&entry));
        entry
    }
}
