//! The dispatcher: the stacks of all plugins, their limits and their state.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use talon_extensions::Role;
use talon_guard::{Call, RawStore};
use talon_plugin::{Events, Plugin, Registry};
use talon_plugin_client::Capability;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::PluginSpec;
use talon_proto::host::PluginCounters;
use talon_proto::plugin::PluginCapabilities;
use talon_proto::roles::proposes;
use talon_sanitize::{Sanitizer, SettingsError};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::call_log::CallLog;
use super::capabilities;
use super::stack_entry::{CachedCapabilities, ConfiguredStacks, StackEntry};
use crate::config::{CallPolicy, Config};

/// The dispatcher is draining and accepts no new calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the supervisor is draining")]
pub struct DrainingError;

/// Dispatches calls to all plugins of one registry, through their guard stacks.
pub struct Dispatcher {
    pub(super) registry: Registry,
    /// Replaced as a whole under the lock of `entries`, so that no stack mixes two configurations.
    pub(super) current: ArcSwap<ConfiguredStacks>,
    pub(super) events: Events,
    pub(super) entries: RwLock<HashMap<String, Arc<StackEntry>>>,
    pub(super) in_flight: TaskTracker,
    pub(super) draining: AtomicBool,
    /// Places of calls that wait for plugins on their first start, over all plugins, and are in no plugin's queue yet: as many as one of our
    /// own services may make at once (`host.limits.service_requests`). Further calls are refused at once and are retryable.
    pub(super) first_waiters: Semaphore,
    pub(super) calls: CallLog,
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
        let first_waiters = usize::try_from(config.host.limits.service_requests).unwrap_or(usize::MAX);
        Self {
            current: ArcSwap::from_pointee(ConfiguredStacks::new(config, sanitizer, &registry)),
            registry,
            events,
            entries: RwLock::default(),
            in_flight: TaskTracker::new(),
            draining: AtomicBool::new(false),
            first_waiters: Semaphore::new(first_waiters.min(Semaphore::MAX_PERMITS)),
            calls: CallLog::default(),
        }
    }

    /// Applies the limits of another configuration from now on. Stacks whose limits did not change are kept,
    /// with their queues and breakers; calls in flight finish under the old limits. Stored data (pages of
    /// long texts, raw answers, taint fingerprints) is kept unless its limits changed.
    ///
    /// # Errors
    /// [`SettingsError`] if the operator's patterns are invalid; then nothing changes.
    pub fn apply_config(&self, config: Arc<Config>) -> Result<(), SettingsError> {
        let entries = self.entries.write();
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

    /// Closes a plugin's breaker and lifts its quarantine: an operator has just restarted the plugin, so
    /// earlier faults no longer count.
    pub fn reset_faults(&self, plugin: &Plugin) {
        let entry = self.entry(plugin);
        entry.gauges.breaker.reset();
        entry.quarantine.lift();
    }

    /// Lifts a plugin's quarantine. Returns whether it was in one.
    pub fn lift_quarantine(&self, plugin: &Plugin) -> bool {
        self.entry(plugin).quarantine.lift()
    }

    /// The latest calls of clients.
    #[must_use]
    pub fn calls(&self) -> &CallLog {
        &self.calls
    }

    /// The quarantined plugins, each with the amount of control syntax that caused it: for a supervisor that
    /// takes over and must keep them in quarantine.
    #[must_use]
    pub fn quarantined(&self) -> Vec<(PluginName, u32)> {
        let entries = self.entries.read();
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
        let mut news = entry.quarantine_updates.lock();
        entry.quarantine.impose(neutralised);
        news.mark_unchanged();
        true
    }

    /// Whether an action declares a role, by the plugin's last declaration. What is not known yet may; what the plugin does
    /// not have is refused by the call's own checks.
    pub(super) fn declares_role(&self, plugin: &str, action: &str, role: Role) -> bool {
        let declared = self.registry.get(plugin).and_then(|plugin| plugin.capability());
        let action = declared.as_ref().and_then(|declared| declared.actions.get(action));
        action.is_none_or(|action| action.roles.iter().any(|declared| declared == role.as_str()))
    }

    /// Whether an action proposes a job of this id, by the plugin's last declaration. What is not known yet proposes none.
    pub(super) fn proposes_job(&self, plugin: &str, action: &str, job: &str) -> bool {
        let declared = self.registry.get(plugin).and_then(|plugin| plugin.capability());
        let action = declared.as_ref().and_then(|declared| declared.actions.get(action));
        action.is_some_and(|action| proposes(action, plugin, job))
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
        let mut shown = entry.capabilities.lock();
        if let Some(shown) = shown.as_ref().filter(|shown| Arc::ptr_eq(&shown.declared, declared)) {
            return Arc::clone(&shown.sanitized);
        }
        let guarded = Arc::new(capabilities::sanitize(&declared.raw, &self.sanitizer()));
        *shown = Some(CachedCapabilities { declared: Arc::clone(declared), sanitized: Arc::clone(&guarded) });
        guarded
    }

    /// Waits for a plugin on its first start to declare its capabilities, as calls wait for a plugin that
    /// restarts. The time counts towards the call's timeout.
    pub(super) async fn wait_for_capabilities(&self, plugin: &Plugin, call: &Call) {
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

    /// Whether a call is in flight.
    #[must_use]
    pub fn is_calling(&self) -> bool {
        !self.in_flight.is_empty()
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
}
