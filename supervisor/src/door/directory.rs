//! How `resolve` sees one plugin: through its handle, at the moment of the call.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use talon_guard::{Actions, Directory, Readiness, Target};
use talon_plugin::{Capability, Desired, Offered, Plugin, Registry, State};

/// The directory for one plugin's stack: it resolves that plugin only.
#[derive(Clone)]
pub(super) struct OnePlugin {
    plugin: Plugin,
    registry: Registry,
    /// The actions and the capability they come from, so that a call neither copies them nor parses a schema
    /// again.
    known: Arc<ArcSwapOption<Known>>,
}

struct Known {
    capability: Arc<Capability>,
    actions: Arc<Actions>,
}

/// Resolves no plugin. It knows the names of the existing ones, for the text of the refusal.
#[derive(Clone)]
pub(super) struct NoPlugin {
    pub(super) registry: Registry,
}

impl OnePlugin {
    pub(super) fn new(plugin: Plugin, registry: Registry) -> Self {
        Self { plugin, registry, known: Arc::default() }
    }

    fn actions(&self, capability: &Arc<Capability>) -> Arc<Actions> {
        if let Some(known) = &*self.known.load()
            && Arc::ptr_eq(&known.capability, capability)
        {
            return Arc::clone(&known.actions);
        }
        let actions = Arc::new(capability.actions.clone().into_iter().collect());
        let known = Known { capability: Arc::clone(capability), actions: Arc::clone(&actions) };
        self.known.store(Some(Arc::new(known)));
        actions
    }
}

impl Directory for OnePlugin {
    fn target(&self, plugin: &str) -> Option<Target> {
        if plugin != self.plugin.name().as_str() {
            return None;
        }
        Some(match self.plugin.offered() {
            Some(Offered { capability, withheld, .. }) => Target {
                declared_name: capability.declared_name.as_str().to_owned(),
                actions: self.actions(&capability),
                withheld,
                ready: Readiness::Known,
            },
            None => {
                let (reason, retryable) = why_unknown(&self.plugin);
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

impl Directory for NoPlugin {
    fn target(&self, _: &str) -> Option<Target> {
        None
    }

    fn names(&self) -> Vec<String> {
        names(&self.registry)
    }
}

pub(super) fn names(registry: &Registry) -> Vec<String> {
    registry.list().iter().map(|plugin| plugin.name().to_string()).collect()
}

/// Why a plugin has not declared its capabilities yet, and whether a retry may help.
fn why_unknown(plugin: &Plugin) -> (String, bool) {
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
