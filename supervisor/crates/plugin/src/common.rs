//! What the handle and the drivers of one plugin share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use talon_sanitize::Sanitized;
use tokio::sync::watch;

use crate::approved::{Approvals, ApproveError, News};
use crate::capability::Capability;
use crate::declared::DeclaredNames;
use crate::events::{EventKind, Events, NewEvent};
use crate::instances::Pool;
use crate::launch::Kept;
use crate::logs::LogSink;
use crate::snapshot;
use crate::spec::{ChangedTools, PluginSpec};

/// What the handle and the drivers of one plugin share.
pub(crate) struct Common {
    /// What its processes are started by.
    pub(crate) spec: Arc<PluginSpec>,
    /// The same as it is registered now: what processes do not notice may have changed.
    pub(crate) registered: ArcSwap<PluginSpec>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) capability: ArcSwapOption<Capability>,
    pub(crate) logs: LogSink,
    pub(crate) events: Events,
    pub(crate) declared: DeclaredNames,
    /// Of the plugin, not of what runs for it now: shared with those that it replaces and is replaced by.
    pub(crate) approvals: Arc<Approvals>,
    /// Held while a declaration is taken: what is approved and what is offered must be of the same one.
    pub(crate) part: Mutex<Part>,
    /// The registry's: counts up when capabilities change.
    pub(crate) changes: watch::Sender<u64>,
    /// The registry's: whether drivers hold still.
    pub(crate) paused: watch::Receiver<bool>,
    /// Held by whoever replaces or removes the plugin; shared as the approvals are.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    /// What came up last, for restarts while there is a `replacement_problem`. Of this one alone: what replaces it has its own.
    pub(crate) kept: Kept,
    /// Why what should have replaced it did not.
    pub(crate) replacement_problem: ArcSwapOption<Sanitized>,
    /// How many processes were started for those that it replaced.
    pub(crate) starts_before: u64,
    /// How processes of those ended, by reason.
    pub(crate) restarts_before: BTreeMap<&'static str, u64>,
}

/// Which part it plays for the plugin of its name.
#[derive(Debug)]
pub(crate) enum Part {
    /// It is the plugin.
    Plugin,
    /// It is started beside the plugin. What it declares is kept to itself until it takes over.
    Beside { declared: Option<Arc<Capability>> },
    /// Another one has taken over: nobody asks any more what this one declares.
    Over,
}

impl Common {
    /// What `spec` needs to become the plugin instead of this one. It has the same log and the same approvals, and knows what
    /// was declared, so that nothing is told which has not changed.
    pub(crate) fn beside(&self, spec: PluginSpec, starts: bool) -> Self {
        let views = self.pool.views();
        let starts_before: u64 = views.iter().map(|view| view.starts).sum();
        let restarts_before = snapshot::restarts(&self.restarts_before, &views);
        let spec = Arc::new(spec);
        Self {
            pool: Arc::new(Pool::new(&spec, starts, Some(&self.pool))),
            registered: ArcSwap::new(spec.clone()),
            spec,
            capability: ArcSwapOption::new(self.capability.load_full()),
            logs: self.logs.clone(),
            events: self.events.clone(),
            declared: self.declared.clone(),
            approvals: self.approvals.clone(),
            part: Mutex::new(Part::Beside { declared: None }),
            changes: self.changes.clone(),
            paused: self.paused.clone(),
            turn: self.turn.clone(),
            kept: Kept::default(),
            replacement_problem: ArcSwapOption::empty(),
            starts_before: self.starts_before + starts_before,
            restarts_before,
        }
    }

    /// `new` becomes the plugin instead of this one; what it declared counts from here on.
    pub(crate) fn give_way(&self, new: &Arc<Self>) {
        *self.play() = Part::Over;
        let declared = match std::mem::replace(&mut *new.play(), Part::Plugin) {
            Part::Beside { declared } => declared,
            Part::Plugin | Part::Over => None,
        };
        new.approvals.set_blocks(new.spec.changed_tools == ChangedTools::Block);
        if let Some(declared) = declared {
            new.set_capability(declared);
        }
    }

    /// Which one this is where two run for one plugin, in a word; `None` if it is the plugin.
    pub(crate) fn part(&self) -> Option<&'static str> {
        match *self.play() {
            Part::Plugin => None,
            Part::Beside { .. } => Some("new"),
            Part::Over => Some("old"),
        }
    }

    /// Nothing that can panic is done while it is held but what is told, which has no state of its own.
    fn play(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what an instance declared. All instances run the same program, so the latest word counts.
    pub(crate) fn set_capability(self: &Arc<Self>, capability: Arc<Capability>) {
        let name = &self.spec.name;
        let mut part = self.play();
        match &mut *part {
            Part::Plugin => {}
            Part::Beside { declared } => {
                *declared = Some(capability);
                return;
            }
            Part::Over => return,
        }
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
        drop(part);
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
