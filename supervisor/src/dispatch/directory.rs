//! How `resolve` sees one plugin: through its handle, at the moment of the call.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use talon_guard::{Actions, Directory, Readiness, Target};
use talon_plugin::{Desired, Plugin, Registry, ReviewedCapability, State};
use talon_plugin_client::Capability;

/// The directory for one plugin's stack: it resolves that plugin only.
#[derive(Clone)]
pub(super) struct PluginDirectory {
    plugin: Plugin,
    registry: Registry,
    /// The actions and the capability they come from, so that a call neither copies them nor parses a schema
    /// again.
    cached: Arc<ArcSwapOption<CachedActions>>,
}

struct CachedActions {
    capability: Arc<Capability>,
    actions: Arc<Actions>,
}

impl PluginDirectory {
    pub(super) fn new(plugin: Plugin, registry: Registry) -> Self {
        Self { plugin, registry, cached: Arc::default() }
    }

    fn actions(&self, capability: &Arc<Capability>) -> Arc<Actions> {
        if let Some(known) = &*self.cached.load()
            && Arc::ptr_eq(&known.capability, capability)
        {
            return Arc::clone(&known.actions);
        }
        let actions = Arc::new(capability.actions.clone().into_iter().collect());
        let known = CachedActions { capability: Arc::clone(capability), actions: Arc::clone(&actions) };
        self.cached.store(Some(Arc::new(known)));
        actions
    }
}

impl Directory for PluginDirectory {
    fn target(&self, plugin: &str) -> Option<Target> {
        if plugin != self.plugin.name().as_str() {
            return None;
        }
        Some(match self.plugin.reviewed_capability() {
            Some(ReviewedCapability { capability, withheld, .. }) => Target {
                declared_name: capability.declared_name.as_str().to_owned(),
                actions: self.actions(&capability),
                withheld,
                ready: Readiness::Known,
            },
            None => {
                let (reason, retryable) = unknown_reason(&self.plugin);
                Target {
                    declared_name: String::new(),
                    actions: Arc::default(),
                    withheld: Arc::default(),
                    ready: Readiness::NotYet { reason, retryable },
                }
            }
        })
    }

    fn names(&self) -> Vec<String> {
        names(&self.registry)
    }
}

pub(super) fn names(registry: &Registry) -> Vec<String> {
    registry.list().iter().map(|plugin| plugin.name().to_string()).collect()
}

/// Why a plugin has not declared its capabilities yet, and whether a retry may help.
fn unknown_reason(plugin: &Plugin) -> (String, bool) {
    let snapshot = plugin.snapshot();
    let name = plugin.name();
    let coming = matches!(snapshot.state, State::Starting | State::Handshaking | State::Backoff)
        || (snapshot.state == State::Discovered && snapshot.desired == Desired::Up);
    let reason = match snapshot.reason {
        Some(reason) => format!("it is {}: {reason}", snapshot.state),
        None if coming => format!("it is {}; try again in a moment", snapshot.state),
        None => format!("it is {}; `talon plugin start {name}` starts it", snapshot.state),
    };
    (reason, coming)
}
