//! All plugins of one supervisor, by their configured names.

mod handover;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::approved::{self, Approvals};
use crate::capability::Capability;
use crate::common::{Common, Part};
use crate::declared::DeclaredNames;
use crate::events::{EventKind, Events, NewEvent};
use crate::instances::{Executor, Pool};
use crate::launch::{Kept, Launcher};
use crate::logs::LogSink;
use crate::name::PluginName;
use crate::plugin::Plugin;
use crate::seam::Launch;
use crate::service::{Link, Service, ServiceSpec};
use crate::settings::{Settings, SetupError};
use crate::spec::{ChangedTools, MAX_INSTANCES, PluginSpec};

/// The most plugins of one supervisor: each has a task, a uid and a log, and a list that nobody can read helps
/// nobody. More are refused when they are registered.
pub const MAX_PLUGINS: usize = 1024;

/// On top of the grace periods, how long a killed plugin may take to go before it is left to its monitor.
const KILL_WAIT: Duration = Duration::from_secs(5);

/// Why a plugin was not registered. The text ends with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is taken.
    #[error(
        "there is a plugin named {name} already, from {taken_by}: rename or remove one of the two ({found_at})"
    )]
    Duplicate {
        /// The name.
        name: PluginName,
        /// Where the one that is there came from.
        taken_by: String,
        /// Where this one came from.
        found_at: String,
    },
    /// There are [`MAX_PLUGINS`] already.
    #[error("{name} is one plugin too many: at most {MAX_PLUGINS} run under one supervisor; use another one")]
    TooMany {
        /// The name.
        name: PluginName,
    },
    /// `instances` is out of range.
    #[error(
        "{name} cannot have {instances} instances: set `instances` to a number from 1 to {MAX_INSTANCES}"
    )]
    Instances {
        /// The name.
        name: PluginName,
        /// What was asked for.
        instances: u32,
    },
    /// The supervisor is shutting down.
    #[error("{name} was not registered, because the supervisor is shutting down")]
    ShuttingDown {
        /// The name.
        name: PluginName,
    },
}

mod replace;

pub use replace::{IfDown, Outcome, ReplaceError, Replaced};

/// All plugins of one supervisor. Cheap to clone; every method may be called from anywhere at any time, within
/// a tokio runtime.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    launcher: Arc<dyn Launch>,
    settings: Arc<Settings>,
    events: Events,
    /// Held for a look or a change, never while waiting for anything.
    plugins: RwLock<BTreeMap<PluginName, Plugin>>,
    /// What runs beside the plugins: on its way to replace one, or replaced by one and on its way out. At most one for each
    /// plugin, because whoever replaces one waits for its turn.
    beside: Mutex<Vec<Plugin>>,
    declared: DeclaredNames,
    changes: watch::Sender<u64>,
    /// Services, for the end; none of them is a plugin.
    services: Mutex<Vec<Service>>,
    closing: AtomicBool,
    /// Whether drivers hold still.
    paused: watch::Sender<bool>,
    /// Where approvals are kept; unset, they end with this registry.
    approved: OnceLock<PathBuf>,
}

impl Registry {
    /// Prepares and locks the runtime directory and clears what a supervisor that was killed left there.
    ///
    /// # Errors
    /// [`SetupError`]; among others if another supervisor runs on the same directory.
    pub fn new(
        settings: Settings,
        stage: Arc<talon_jail::Stage>,
        events: Events,
    ) -> Result<Self, SetupError> {
        let settings = Arc::new(settings);
        let launcher = Arc::new(Launcher::new(settings.clone(), stage)?);
        Ok(Self::with_launcher(settings, launcher, events))
    }

    pub(crate) fn with_launcher(settings: Arc<Settings>, launcher: Arc<dyn Launch>, events: Events) -> Self {
        Self {
            inner: Arc::new(Inner {
                launcher,
                settings,
                events,
                plugins: RwLock::default(),
                beside: Mutex::default(),
                declared: DeclaredNames::default(),
                changes: watch::Sender::new(0),
                services: Mutex::default(),
                closing: AtomicBool::new(false),
                paused: watch::Sender::new(false),
                approved: OnceLock::new(),
            }),
        }
    }

    /// Keeps what is approved of plugins' actions below the data directory, for those that are registered from now on. A
    /// registry that is not told so, such as one for a single call, takes what it sees first for approved and forgets it.
    /// Blocking.
    ///
    /// # Errors
    /// [`SetupError`] if there is no place for it.
    pub fn keep_approvals(&self) -> Result<(), SetupError> {
        let data_dir = &self.inner.settings.data_dir;
        let dir = approved::prepare(data_dir).map_err(|source| SetupError::Io {
            what: "make the place for approvals in",
            path: data_dir.clone(),
            source,
        })?;
        // A second word is the same as the first.
        let _ = self.inner.approved.set(dir);
        Ok(())
    }

    /// Adds a plugin and, if it is enabled, starts it; returns without waiting for that.
    ///
    /// # Errors
    /// [`RegisterError`]; a name that is taken stays with whoever has it.
    pub fn register(&self, spec: PluginSpec) -> Result<Plugin, RegisterError> {
        let inner = &self.inner;
        let name = spec.name.clone();
        if !(1..=MAX_INSTANCES).contains(&spec.instances) {
            return Err(RegisterError::Instances { instances: spec.instances, name });
        }
        let mut plugins = self.write();
        if inner.closing.load(Ordering::Acquire) {
            return Err(RegisterError::ShuttingDown { name });
        }
        if let Some(taken) = plugins.get(&name) {
            let taken_by = taken.spec().source.clone();
            return Err(RegisterError::Duplicate { taken_by, found_at: spec.source, name });
        }
        if plugins.len() >= MAX_PLUGINS {
            return Err(RegisterError::TooMany { name });
        }
        inner.declared.add(&name);
        inner.launcher.expect(&spec);
        let blocks = spec.changed_tools == ChangedTools::Block;
        let approvals = Approvals::new(&name, blocks, inner.approved.get().cloned());
        let spec = Arc::new(spec);
        let common = Arc::new(Common {
            pool: Arc::new(Pool::new(&spec, spec.enabled, None)),
            registered: ArcSwap::new(spec.clone()),
            spec,
            capability: ArcSwapOption::empty(),
            logs: LogSink::new(&name, &inner.settings, inner.events.clone()),
            events: inner.events.clone(),
            declared: inner.declared.clone(),
            approvals: Arc::new(approvals),
            part: Mutex::new(Part::Plugin),
            changes: inner.changes.clone(),
            paused: inner.paused.subscribe(),
            turn: Arc::default(),
            kept: Kept::default(),
            replacement_problem: ArcSwapOption::empty(),
            starts_before: 0,
            restarts_before: BTreeMap::new(),
        });
        let plugin = Plugin::spawn(&inner.launcher, common);
        plugins.insert(name, plugin.clone());
        drop(plugins);
        self.changed();
        Ok(plugin)
    }

    /// Starts a program of our own and keeps it running until it is stopped or the registry is shut down; returns
    /// without waiting for that. A service is no plugin: no name of this registry leads to it. Two of one name would share
    /// a uid and a home, so stop one before the next is started. After [`shutdown`](Self::shutdown) none is.
    pub fn service(&self, spec: ServiceSpec, link: Arc<dyn Link>) -> Service {
        let inner = &self.inner;
        let logs = LogSink::new(&spec.name, &inner.settings, inner.events.clone());
        let stop = CancellationToken::new();
        // Held to the end, so that whoever shuts down has either been here before or sees it.
        let mut services = self.services();
        if inner.closing.load(Ordering::Acquire) {
            stop.cancel();
        }
        let service = Service::run(inner.launcher.clone(), spec, link, logs, stop);
        services.retain(|service| !service.has_ended());
        services.push(service.clone());
        service
    }

    /// Stops a plugin as an operator would, then forgets it. Its name is free again when this returns; calls
    /// in flight had their grace period. A replacement under way is waited for. `false`: there is none of that name.
    pub async fn deregister(&self, name: &PluginName) -> bool {
        let Some((plugin, _turn)) = self.turn(name).await else { return false };
        plugin.retire(None).await;
        plugin.end().await;
        let removed = self.write().remove(name).is_some();
        if removed {
            self.inner.declared.remove(name);
            self.changed();
        }
        removed
    }

    /// The plugin of this configured name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Plugin> {
        let name = PluginName::new(name).ok()?;
        self.read().get(&name).cloned()
    }

    /// All plugins, by name.
    #[must_use]
    pub fn list(&self) -> Vec<Plugin> {
        self.read().values().cloned().collect()
    }

    /// What the plugin declared last.
    #[must_use]
    pub fn get_capability(&self, name: &str) -> Option<Arc<Capability>> {
        self.get(name)?.capability()
    }

    /// Runs calls on the plugin.
    #[must_use]
    pub fn get_executor(&self, name: &str) -> Option<Executor> {
        Some(self.get(name)?.executor())
    }

    /// What every plugin declared last, by configured name; without those that never shook hands.
    #[must_use]
    pub fn list_capabilities(&self) -> Vec<(PluginName, Arc<Capability>)> {
        let known = |plugin: Plugin| Some((plugin.name().clone(), plugin.capability()?));
        self.list().into_iter().filter_map(known).collect()
    }

    /// Whether the plugin declared the action.
    #[must_use]
    pub fn has_action(&self, plugin: &str, action: &str) -> bool {
        self.get_capability(plugin).is_some_and(|capability| capability.actions.contains_key(action))
    }

    /// Counts up when a plugin is added or removed, or when one's capabilities change.
    #[must_use]
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Has all drivers hold still, between two events of theirs: nothing is started, checked, restarted or stopped until
    /// [`resume`](Self::resume), and whoever tells one something waits. For while another supervisor tries whether it can take the
    /// processes over: two that restart one plugin would have it twice.
    pub fn pause(&self) {
        self.inner.paused.send_replace(true);
    }

    /// Has them go on. What happened meanwhile is dealt with now.
    pub fn resume(&self) {
        self.inner.paused.send_replace(false);
    }

    /// Stops all plugins at once: no new calls, calls in flight may finish within `grace` (or a plugin's own
    /// shorter grace period), then Shutdown, SIGTERM and SIGKILL within `grace` once more. When this returns,
    /// at the latest some seconds after four times `grace`, no process and no socket is left. No plugin can be
    /// registered afterwards.
    ///
    /// Services stop after the plugins, which may need them to the end: they are asked, and get SIGTERM and SIGKILL
    /// within twice `grace` (or their own shorter grace period) once more.
    pub async fn shutdown(&self, grace: Duration) {
        {
            // Under the lock, so that whoever registers has either been here before or sees it.
            let _plugins = self.write();
            let _services = self.services();
            self.inner.closing.store(true, Ordering::Release);
        }
        self.resume();
        let mut plugins = self.list();
        self.inner
            .events
            .emit(NewEvent::new(EventKind::Supervisor, format!("shutting down {} plugins", plugins.len())));
        plugins.extend(self.beside().iter().cloned());
        let stops = plugins.iter().map(|plugin| plugin.retire(Some(grace)));
        let bound = grace.saturating_mul(2).saturating_add(KILL_WAIT);
        if tokio::time::timeout(bound, join_all(stops)).await.is_err() {
            for plugin in plugins.iter().filter(|plugin| !plugin.is_stopped()) {
                tracing::error!(plugin = %plugin.name(), "still there after SIGKILL; left to its monitor");
            }
        }
        join_all(plugins.iter().map(Plugin::end)).await;
        self.write().clear();
        self.beside().clear();
        let services = std::mem::take(&mut *self.services());
        join_all(services.iter().map(|service| service.retire(Some(grace)))).await;
        let launcher = self.inner.launcher.clone();
        // Removing files may block; a panic in there has been reported by the panic hook.
        let _ = tokio::task::spawn_blocking(move || launcher.remove_all()).await;
        self.changed();
    }

    /// Where the registry and its plugins tell what happens.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.inner.events
    }

    fn changed(&self) {
        self.inner.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn beside(&self) -> MutexGuard<'_, Vec<Plugin>> {
        self.inner.beside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn services(&self) -> MutexGuard<'_, Vec<Service>> {
        self.inner.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<PluginName, Plugin>> {
        self.inner.plugins.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<PluginName, Plugin>> {
        self.inner.plugins.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.read().keys()).finish()
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
