//! The state that the handle and the drivers of one plugin share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use talon_plugin_client::Capability;
use talon_plugin_config::spec::{ChangedTools, PluginSpec};
use talon_sanitize::Sanitized;
use tokio::sync::watch;

use crate::approvals::{Approvals, ApproveError, ChangeNotice};
use crate::declared_names::DeclaredNames;
use crate::events::{EventKind, Events, NewEvent};
use crate::instances::{InstancePool, total_restarts};
use crate::launch::LastGoodCache;
use crate::logs::LogSink;
use crate::source_events::{EventCounters, SinkSlot};

/// Timeout for a refresh of capabilities. They are a small message; if a plugin is busy for longer than this,
/// the caller retries.
pub(crate) const REFRESH_TIMEOUT: Duration = Duration::from_secs(10);

/// The state that the handle and the drivers of one plugin share.
pub(crate) struct PluginContext {
    /// The spec that its processes are started from.
    pub(crate) spec: Arc<PluginSpec>,
    /// The spec as it is registered now: settings that processes do not see may have changed.
    pub(crate) registered: ArcSwap<PluginSpec>,
    pub(crate) pool: Arc<InstancePool>,
    pub(crate) capability: ArcSwapOption<Capability>,
    pub(crate) logs: LogSink,
    pub(crate) events: Events,
    pub(crate) declared: DeclaredNames,
    /// Belongs to the plugin and not to its current processes: shared with predecessors and successors.
    pub(crate) approvals: Arc<Approvals>,
    /// Locked while a declaration is stored: what is approved and what is offered must belong to the same
    /// one.
    pub(crate) role: Mutex<PluginRole>,
    /// The registry's counter: incremented when capabilities change.
    pub(crate) changes: watch::Sender<u64>,
    /// The registry's flag: whether drivers are paused.
    pub(crate) paused: watch::Receiver<bool>,
    /// Held while the plugin is replaced or removed; shared like the approvals.
    pub(crate) replace_lock: Arc<tokio::sync::Mutex<()>>,
    /// The last program that became ready, for restarts while there is a `replacement_problem`. Not shared
    /// with successors.
    pub(crate) last_good: LastGoodCache,
    /// Why the last replacement failed.
    pub(crate) replacement_problem: ArcSwapOption<Sanitized>,
    /// Where its events go.
    pub(crate) event_sink: SinkSlot,
    /// What is counted of its events.
    pub(crate) event_counters: Arc<EventCounters>,
    /// How many processes were started for its predecessors.
    pub(crate) starts_before: u64,
    /// How many processes of its predecessors ended, by reason.
    pub(crate) restarts_before: BTreeMap<&'static str, u64>,
}

/// The role of one set of processes for the plugin.
#[derive(Debug)]
pub(crate) enum PluginRole {
    /// It is the plugin.
    Current,
    /// It may replace the plugin. Its declaration is stored here and not published until it takes over.
    Candidate { declared: Option<Arc<Capability>> },
    /// It was replaced: its declarations are ignored.
    Superseded,
}

impl PluginContext {
    /// A candidate with `spec` that can replace this one. It shares the log and the approvals and starts with
    /// the stored capabilities, so that unchanged ones are not reported again.
    pub(crate) fn new_candidate(&self, spec: PluginSpec, starts: bool) -> Self {
        let views = self.pool.statuses();
        let starts_before: u64 = views.iter().map(|view| view.starts).sum();
        let restarts_before = total_restarts(&self.restarts_before, &views);
        let spec = Arc::new(spec);
        Self {
            pool: Arc::new(InstancePool::new(&spec, starts, Some(&self.pool))),
            registered: ArcSwap::new(spec.clone()),
            spec,
            capability: ArcSwapOption::new(self.capability.load_full()),
            logs: self.logs.clone(),
            events: self.events.clone(),
            declared: self.declared.clone(),
            approvals: self.approvals.clone(),
            role: Mutex::new(PluginRole::Candidate { declared: None }),
            changes: self.changes.clone(),
            paused: self.paused.clone(),
            replace_lock: self.replace_lock.clone(),
            last_good: LastGoodCache::default(),
            replacement_problem: ArcSwapOption::empty(),
            event_sink: self.event_sink.clone(),
            event_counters: self.event_counters.clone(),
            starts_before: self.starts_before + starts_before,
            restarts_before,
        }
    }

    /// Makes `new` the plugin instead of this one and publishes its declaration.
    pub(crate) fn supersede_with(&self, new: &Arc<Self>) {
        *self.role.lock() = PluginRole::Superseded;
        let declared = match std::mem::replace(&mut *new.role.lock(), PluginRole::Current) {
            PluginRole::Candidate { declared } => declared,
            PluginRole::Current | PluginRole::Superseded => None,
        };
        new.approvals.set_block_changes(new.spec.changed_tools == ChangedTools::Block);
        if let Some(declared) = declared {
            new.set_capability(declared);
        }
    }

    /// A word for the role if it is not the plugin itself, for messages while two sets of processes run.
    pub(crate) fn role_label(&self) -> Option<&'static str> {
        match *self.role.lock() {
            PluginRole::Current => None,
            PluginRole::Candidate { .. } => Some("new"),
            PluginRole::Superseded => Some("old"),
        }
    }

    /// Stores what an instance declared. All instances run the same program, so the latest declaration
    /// counts.
    pub(crate) fn set_capability(self: &Arc<Self>, capability: Arc<Capability>) {
        let name = &self.spec.name;
        let mut part = self.role.lock();
        match &mut *part {
            PluginRole::Current => {}
            PluginRole::Candidate { declared } => {
                *declared = Some(capability);
                return;
            }
            PluginRole::Superseded => return,
        }
        let known = self.capability.load();
        let same = |known: &Capability| {
            known.raw == capability.raw
                && known.omitted == capability.omitted
                && known.escaped == capability.escaped
        };
        if known.as_deref().is_some_and(same) {
            return;
        }
        let actions = capability.actions.len();
        if let Some(note) = self.declared.declare(name, capability.declared_name.as_str()) {
            tracing::warn!(plugin = %name, "{note}");
        }
        for note in &capability.notes() {
            tracing::warn!(plugin = %name, "{note}");
        }
        // Before the new actions can be called, so that none runs that should be refused.
        let declared = self.approvals.declare(&capability);
        self.capability.store(Some(capability));
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        self.events.emit(
            NewEvent::new(EventKind::CapabilitiesChanged, format!("it offers {actions} actions"))
                .plugin(name)
                .field("actions", actions),
        );
        declared.notices.iter().for_each(|news| self.report_change(news));
        if declared.needs_save {
            let common = self.clone();
            // Not awaited: the approval is in force already.
            drop(tokio::task::spawn_blocking(move || {
                if let Some(news) = common.approvals.save() {
                    common.report_change(&news);
                }
            }));
        }
        drop(part);
    }

    /// Approves what these actions declare now, or all of them; returns those that were not approved before.
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
            // The set of callable actions may have changed.
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

    fn report_change(&self, news: &ChangeNotice) {
        let name = &self.spec.name;
        tracing::warn!(plugin = %name, "{}", news.text);
        let mut event = NewEvent::new(EventKind::ToolsChanged, news.text.clone())
            .plugin(name)
            .field("what", &news.change);
        if let Some(action) = &news.action {
            event = event.field("action", action);
        }
        self.events.emit(event);
    }
}
