//! The stacks of a dispatcher, each with its counters and its state.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use talon_guard::{AdmissionGauge, BreakerGauge, Quarantine, QuarantineInfo, Stack};
use talon_plugin::{EventKind, Events, NewEvent, Plugin};
use talon_plugin_client::Capability;
use talon_plugin_config::spec::PluginSpec;
use talon_proto::plugin::PluginCapabilities;
use tokio::sync::watch;

use super::counters::Counters;
use super::shared_layers::SharedLayers;
use crate::config::{CallPolicy, Config};

/// One plugin's stack with its counters.
pub(super) struct StackEntry {
    /// The spec that the stack was built from. If the plugin's spec differs, the stack is stale.
    pub(super) spec: Option<Arc<PluginSpec>>,
    /// The policy that the stack was built with.
    pub(super) policy: CallPolicy,
    /// The current configuration needs another stack.
    pub(super) stale: AtomicBool,
    pub(super) stack: Stack,
    pub(super) gauges: StackGauges,
    pub(super) counters: Arc<Counters>,
    pub(super) quarantine: Quarantine,
    /// Changes of the quarantine that were not reported yet.
    pub(super) quarantine_updates: Mutex<watch::Receiver<Option<QuarantineInfo>>>,
    pub(super) capabilities: Mutex<Option<CachedCapabilities>>,
}

/// A declaration and its sanitized form for clients. Cached per declaration: sanitizing a hostile one of some
/// megabytes keeps a thread busy for a while, and clients may ask often.
pub(super) struct CachedCapabilities {
    pub(super) declared: Arc<Capability>,
    pub(super) sanitized: Arc<PluginCapabilities>,
}

/// Handles for reading the state of a stack.
#[derive(Clone)]
pub(super) struct StackGauges {
    pub(super) admission: AdmissionGauge,
    pub(super) breaker: BreakerGauge,
}

/// The stacks that depend on the configuration and not on a plugin. Each configuration gets new ones, which
/// replace the old ones as a whole.
pub(super) struct ConfiguredStacks {
    pub(super) config: Arc<Config>,
    pub(super) shared: Arc<SharedLayers>,
    /// The stack for calls to unknown plugins.
    pub(super) unknown_plugin: Arc<StackEntry>,
    pub(super) core: Option<Arc<CoreEntry>>,
}

/// The supervisor's own actions.
pub(super) struct CoreEntry {
    pub(super) stack: Stack,
    pub(super) counters: Arc<Counters>,
    pub(super) capabilities: Arc<PluginCapabilities>,
}

impl StackEntry {
    /// Reports a new quarantine once. It runs at the end of each call, because only an answer can cause a
    /// quarantine.
    pub(super) fn report_quarantine(&self, plugin: &Plugin, events: &Events) {
        if !self.quarantine.is_quarantined() {
            return;
        }
        let mut news = self.quarantine_updates.lock();
        if !news.has_changed().unwrap_or_default() {
            return;
        }
        let Some(quarantined) = *news.borrow_and_update() else { return };
        let name = plugin.name();
        let count = quarantined.neutralised;
        let reason = format!("{count} places of control syntax in its answers");
        let message = format!(
            "quarantined: {reason}; look at `talon event list`, then \
             `talon plugin start {name}` takes it back"
        );
        tracing::warn!(plugin = %name, neutralised = count, "{message}");
        let event = NewEvent::new(EventKind::Quarantined, message).plugin(name);
        events.emit(event.field("neutralised", count).field("reason", reason));
    }
}
