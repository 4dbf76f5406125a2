//! Replaces a plugin's processes by new ones without losing a call.
//!
//! ```text
//! old   serving ─────────────────────────────┐ draining: its calls end within the grace period ─► gone
//!                                            │ swap, under the registry's lock
//! new   starting ─► handshaking ─► all ready ┘ serving
//!                         └─ one of them failed: removed, and the old one keeps serving
//! ```
//!
//! The new plugin is ready when *all* of its instances are. It shares the old one's state (log, approvals,
//! declared name, counters); its declaration is published at the swap, and only if it differs.
//!
//! If the new plugin failed, the old one keeps serving. If it then dies, it is restarted from the last
//! program with which it became ready, because the disk holds the program that failed.

use std::time::{Duration, Instant};

use talon_sanitize::{Sanitized, sanitized};
use tokio::sync::OwnedMutexGuard;

use super::{Arc, EventKind, MAX_INSTANCES, NewEvent, Ordering, Plugin, PluginName, PluginSpec, Registry};
use crate::instances::InstanceStatus;
use crate::lifecycle::State;
use crate::plugin::OperateError;

/// How a replacement treats a plugin that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownPolicy {
    /// It is started: the caller asked for this plugin by name.
    Start,
    /// It stays down, unless its `enabled` setting changed: a file change does not start what an operator
    /// stopped.
    StayDown,
}

/// The result of a replacement.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// The plugin as it is now.
    pub plugin: Plugin,
    /// The outcome.
    pub outcome: ReplaceOutcome,
    /// The digest of what ran before, lower-case hex; `None` if nothing was started before.
    pub old_digest: Option<String>,
    /// The digest of what runs now; `None` if nothing runs.
    pub new_digest: Option<String>,
    /// From the beginning until new calls went to the new plugin.
    pub took: Duration,
}

/// The outcome of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceOutcome {
    /// The new plugin serves, and the old one finishes its calls.
    Replaced,
    /// The plugin did not serve before, and serves now.
    Started,
    /// The plugin is not to run. The old one finishes its calls.
    Down,
}

/// Why a plugin was not replaced. The texts end with what to do next.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// There is no plugin of that name.
    #[error("there is no plugin named {plugin}; `talon plugin list` shows those there are")]
    Unknown {
        /// The name.
        plugin: PluginName,
    },
    /// `instances` is out of range.
    #[error(
        "{plugin} cannot have {instances} instances: set `instances` to a number from 1 to {MAX_INSTANCES}"
    )]
    Instances {
        /// The name.
        plugin: PluginName,
        /// What was asked for.
        instances: u32,
    },
    /// The new plugin did not become ready and was removed; the old one keeps serving.
    #[error("the new {plugin} did not become ready, and the old one keeps serving: {reason}")]
    NewNotReady {
        /// The name.
        plugin: PluginName,
        /// Why.
        reason: Sanitized,
    },
    /// The plugin did not serve before, and the new one does not either; it is registered anyway.
    #[error(transparent)]
    NotReady(OperateError),
    /// It was stopped meanwhile; nothing was changed.
    #[error(
        "{plugin} was stopped while it was being replaced, and nothing was changed; start it, or reload it again"
    )]
    Stopped {
        /// The name.
        plugin: PluginName,
    },
    /// The supervisor is shutting down; nothing was changed.
    #[error("{plugin} was not replaced, because the supervisor is shutting down")]
    ShuttingDown {
        /// The name.
        plugin: PluginName,
    },
}

impl Registry {
    /// Replaces the plugin of `spec`'s name by `spec`, and returns when new calls go to it. Always starts new
    /// processes, even if nothing differs. Replacements of one plugin are serialized: the next one waits
    /// until the processes that the first replaced are gone. Dropping the future does not cancel the
    /// replacement.
    ///
    /// Both run until the new plugin is ready, and the starts of both count against `start_concurrency`; it
    /// takes at most `spec`'s start timeout from when the start gets its turn.
    ///
    /// # Errors
    /// [`ReplaceError`]; the old plugin keeps serving then.
    pub async fn replace(&self, spec: PluginSpec, if_down: DownPolicy) -> Result<Replacement, ReplaceError> {
        let registry = self.clone();
        match tokio::spawn(async move { registry.replace_now(spec, if_down).await }).await {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Changes registered settings of a plugin without new processes. `false`: there is no plugin of that
    /// name, or the change needs new processes ([`PluginSpec::runs_same_process`]); nothing was changed then.
    pub async fn adjust(&self, spec: PluginSpec) -> bool {
        let Some((plugin, _turn)) = self.lock_for_replace(&spec.name).await else { return false };
        let common = plugin.context();
        if !common.spec.runs_same_process(&spec) {
            return false;
        }
        common.approvals.set_block_changes(spec.changed_tools == super::ChangedTools::Block);
        common.registered.store(Arc::new(spec));
        self.notify_change();
        true
    }

    /// Records that a new version of a plugin was refused before anything was started: the refusal is
    /// reported, and shown with the plugin until a replacement succeeds.
    pub fn record_refused_replacement(&self, name: &PluginName, reason: &Sanitized) {
        let Some(plugin) = self.get(name.as_str()) else { return };
        plugin.context().replacement_problem.store(Some(Arc::new(reason.clone())));
        tracing::error!(plugin = %name, "not replaced, the old one keeps serving: {reason}");
        let message = sanitized!("not replaced, the old one keeps serving: {}", reason);
        let event = NewEvent::new(EventKind::ReplacementFailed, message).plugin(name).field("reason", reason);
        self.inner.events.emit(event);
    }

    /// The plugin of this name, locked for a replacement or removal.
    pub(super) async fn lock_for_replace(&self, name: &PluginName) -> Option<(Plugin, OwnedMutexGuard<()>)> {
        loop {
            let turn = self.get(name.as_str())?.context().replace_lock.clone();
            let held = turn.clone().lock_owned().await;
            // The previous holder may have replaced the plugin, or removed it, and another may have been
            // added.
            let plugin = self.get(name.as_str())?;
            if Arc::ptr_eq(&plugin.context().replace_lock, &turn) {
                return Some((plugin, held));
            }
        }
    }

    async fn replace_now(&self, spec: PluginSpec, if_down: DownPolicy) -> Result<Replacement, ReplaceError> {
        let name = spec.name.clone();
        if !(1..=MAX_INSTANCES).contains(&spec.instances) {
            return Err(ReplaceError::Instances { instances: spec.instances, plugin: name });
        }
        let unknown = || ReplaceError::Unknown { plugin: name.clone() };
        let (old, turn) = self.lock_for_replace(&name).await.ok_or_else(unknown)?;
        let began = Instant::now();
        let served = old.is_serving();
        let starts = match if_down {
            DownPolicy::Start => true,
            DownPolicy::StayDown if old.context().spec.enabled != spec.enabled => spec.enabled,
            DownPolicy::StayDown => old.is_desired_up(),
        };
        let old_digest = old.snapshot().digest;
        let new = self.start_candidate(&old, spec, starts)?;
        let swapped = if served && starts {
            match self.wait_all_ready(&new).await {
                Ok(()) => self.swap(&old, &new, true),
                Err(reason) => Err(ReplaceError::NewNotReady { plugin: name.clone(), reason }),
            }
        } else {
            self.swap(&old, &new, false)
        };
        if let Err(error) = swapped {
            self.discard_candidate(new, turn, &error).await;
            return Err(error);
        }
        // The old one may have been stopped at the moment of the swap.
        if served && starts && !old.is_desired_up() {
            let _ = new.stop().await;
        }
        self.retire_in_background(old, turn);
        let outcome = match (starts, served) {
            (true, true) => ReplaceOutcome::Replaced,
            (true, false) => ReplaceOutcome::Started,
            (false, _) => ReplaceOutcome::Down,
        };
        if outcome == ReplaceOutcome::Started {
            new.wait_first_attempt().await.map_err(ReplaceError::NotReady)?;
        }
        let new_digest = new.snapshot().digest.filter(|_| starts);
        let replaced = Replacement { plugin: new, outcome, old_digest, new_digest, took: began.elapsed() };
        self.report_replaced(&replaced);
        Ok(replaced)
    }

    /// Creates the new plugin and starts it if requested. A concurrent shutdown either sees it or has set
    /// `closing` before.
    fn start_candidate(&self, old: &Plugin, spec: PluginSpec, starts: bool) -> Result<Plugin, ReplaceError> {
        let _plugins = self.read();
        if self.inner.closing.load(Ordering::Acquire) {
            return Err(ReplaceError::ShuttingDown { plugin: spec.name });
        }
        let common = Arc::new(old.context().new_candidate(spec, starts));
        let new = Plugin::spawn(&self.inner.launcher, common);
        self.inner.in_transition.lock().push(new.clone());
        Ok(new)
    }

    /// Waits until every instance is ready, or the first one has failed. The launcher bounds the wait.
    async fn wait_all_ready(&self, new: &Plugin) -> Result<(), Sanitized> {
        let failed = |view: &Arc<InstanceStatus>| {
            matches!(view.state, State::Backoff | State::Failed | State::Refused | State::Stopped)
        };
        let pool = &new.context().pool;
        let ready = |views: &[Arc<InstanceStatus>]| views.iter().all(|view| view.state == State::Ready);
        pool.wait_until(|views| ready(views) || views.iter().any(failed)).await;
        let views = pool.statuses();
        if ready(&views) {
            return Ok(());
        }
        let why = |(index, view): (usize, &Arc<InstanceStatus>)| {
            failed(view).then(|| match &view.cause {
                Some(reason) if views.len() == 1 => reason.clone(),
                Some(reason) => sanitized!("instance {}: {}", index, reason),
                None => sanitized!("instance {} is {}", index, view.state),
            })
        };
        let reason = views.iter().enumerate().find_map(why);
        Err(reason.unwrap_or_else(|| "it was ready and ended at once; see its log".into()))
    }

    /// Makes the new plugin the registered one.
    fn swap(&self, old: &Plugin, new: &Plugin, served: bool) -> Result<(), ReplaceError> {
        let mut plugins = self.write();
        let plugin = || old.name().clone();
        if self.inner.closing.load(Ordering::Acquire) {
            return Err(ReplaceError::ShuttingDown { plugin: plugin() });
        }
        if served && !old.is_desired_up() {
            return Err(ReplaceError::Stopped { plugin: plugin() });
        }
        old.supersede_with(new);
        plugins.insert(plugin(), new.clone());
        let mut beside = self.inner.in_transition.lock();
        beside.retain(|plugin| !plugin.is_same(new));
        beside.push(old.clone());
        Ok(())
    }

    /// Removes the new plugin after a failed replacement.
    async fn discard_candidate(&self, new: Plugin, turn: OwnedMutexGuard<()>, error: &ReplaceError) {
        if let ReplaceError::NewNotReady { plugin, reason } = error {
            self.record_refused_replacement(plugin, reason);
        }
        new.retire(Some(Duration::ZERO)).await;
        new.end().await;
        self.inner.in_transition.lock().retain(|plugin| !plugin.is_same(&new));
        drop(turn);
    }

    /// Lets the old plugin finish its calls and end, in the background; then the next replacement may begin.
    fn retire_in_background(&self, old: Plugin, turn: OwnedMutexGuard<()>) {
        let registry = self.clone();
        tokio::spawn(async move {
            old.retire(None).await;
            old.end().await;
            registry.inner.in_transition.lock().retain(|plugin| !plugin.is_same(&old));
            drop(turn);
        });
    }

    fn report_replaced(&self, replaced: &Replacement) {
        let Replacement { plugin, outcome, old_digest, new_digest, took } = replaced;
        let name = plugin.name();
        let (old, new) = (old_digest.as_deref().unwrap_or("-"), new_digest.as_deref().unwrap_or("-"));
        let what = match outcome {
            ReplaceOutcome::Replaced if old == new => "new processes of the same program serve now",
            ReplaceOutcome::Replaced => "a new program serves now",
            ReplaceOutcome::Started => "started anew",
            ReplaceOutcome::Down => "it is down",
        };
        tracing::info!(plugin = %name, old_digest = old, new_digest = new, took_ms = took.as_millis(), "replaced: {what}");
        self.inner.events.emit(
            NewEvent::new(EventKind::PluginReplaced, format!("replaced: {what}"))
                .plugin(name)
                .field("old_digest", old)
                .field("new_digest", new),
        );
    }
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;
