//! What the handle and the drivers of one plugin share.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::watch;

use crate::capability::Capability;
use crate::declared::DeclaredNames;
use crate::events::{EventKind, Events, NewEvent};
use crate::instances::Pool;
use crate::logs::LogSink;
use crate::spec::PluginSpec;

/// What the handle and the drivers of one plugin share.
pub(crate) struct Common {
    pub(crate) spec: Arc<PluginSpec>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) capability: ArcSwapOption<Capability>,
    pub(crate) logs: LogSink,
    pub(crate) events: Events,
    pub(crate) declared: DeclaredNames,
    /// The registry's: counts up when capabilities change.
    pub(crate) changes: watch::Sender<u64>,
}

impl Common {
    /// Takes what an instance declared. All instances run the same program, so the latest word counts.
    pub(crate) fn set_capability(&self, capability: Arc<Capability>) {
        let name = &self.spec.name;
        let known = self.capability.load();
        let same = |known: &Capability| known.raw == capability.raw && known.left_out == capability.left_out;
        if known.as_deref().is_some_and(same) {
            return;
        }
        let actions = capability.actions.len();
        if let Some(note) = self.declared.declare(name, capability.declared_name.as_str()) {
            tracing::warn!(plugin = %name, "{note}");
        }
        for note in &capability.left_out {
            tracing::warn!(plugin = %name, "{note}");
        }
        self.capability.store(Some(capability));
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        self.events.emit(
            NewEvent::new(EventKind::CapabilitiesChanged, format!("it offers {actions} actions"))
                .plugin(name)
                .field("actions", actions),
        );
    }
}
