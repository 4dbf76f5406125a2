//! What the handle and the drivers of one plugin share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use tokio::sync::watch;

use crate::approved::{Approvals, ApproveError, News};
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
    pub(crate) approvals: Approvals,
    /// Held while a declaration is taken: what is approved and what is offered must be of the same one.
    pub(crate) declaring: Mutex<()>,
    /// The registry's: counts up when capabilities change.
    pub(crate) changes: watch::Sender<u64>,
}

impl Common {
    /// Takes what an instance declared. All instances run the same program, so the latest word counts.
    pub(crate) fn set_capability(self: &Arc<Self>, capability: Arc<Capability>) {
        let name = &self.spec.name;
        let _turn = self.declaring.lock().unwrap_or_else(PoisonError::into_inner);
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
        // Before the new actions can be called, so that none is that should not be.
        let declared = self.approvals.declare(&capability);
        self.capability.store(Some(capability));
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        self.events.emit(
            NewEvent::new(EventKind::CapabilitiesChanged, format!("it offers {actions} actions"))
                .plugin(name)
                .field("actions", actions),
        );
        declared.news.iter().for_each(|news| self.tell(news));
        if declared.keep {
            let common = self.clone();
            // It is not waited for: what was approved counts already.
            drop(tokio::task::spawn_blocking(move || {
                if let Some(news) = common.approvals.keep() {
                    common.tell(&news);
                }
            }));
        }
    }

    /// Approves what these actions declare now, or all of them; gives those that were not approved before.
    pub(crate) async fn approve(
        self: &Arc<Self>,
        actions: Vec<String>,
        seen: BTreeMap<String, String>,
    ) -> Result<Vec<String>, ApproveError> {
        let common = self.clone();
        let approving = tokio::task::spawn_blocking(move || common.approvals.approve(&actions, &seen));
        let approved = match approving.await {
            Ok(approved) => approved?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        if !approved.is_empty() {
            // What can be called may be something else now.
            self.changes.send_modify(|count| *count = count.wrapping_add(1));
            let message = format!("approved: {}", approved.join(", "));
            self.events.emit(
                NewEvent::new(EventKind::CapabilitiesChanged, message)
                    .plugin(&self.spec.name)
                    .field("approved", approved.len()),
            );
        }
        Ok(approved)
    }

    fn tell(&self, news: &News) {
        let name = &self.spec.name;
        tracing::warn!(plugin = %name, "{}", news.text);
        let mut event =
            NewEvent::new(EventKind::ToolsChanged, news.text.clone()).plugin(name).field("what", &news.what);
        if let Some(action) = &news.action {
            event = event.field("action", action);
        }
        self.events.emit(event);
    }
}
