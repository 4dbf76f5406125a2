//! All plugins of one supervisor, by their configured names.

mod handover;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::join_all;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use talon_plugin_client::Capability;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{ChangedTools, MAX_INSTANCES, PluginSpec};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::approvals::{self, Approvals};
use crate::declared_names::DeclaredNames;
use crate::events::{EventKind, Events, NewEvent};
use crate::instances::{Executor, InstancePool};
use crate::launch::{LastGoodCache, Launcher};
use crate::launcher::Launch;
use crate::logs::LogSink;
use crate::plugin::Plugin;
use crate::plugin_context::{PluginContext, PluginRole};
use crate::service::{Service, ServiceHooks};
use crate::service_spec::ServiceSpec;
use crate::settings::{Settings, SetupError};
use crate::source_events::{EventSink, SinkSlot};

/// The most plugins of one supervisor: each has a task, a uid and a log, and a longer list is unreadable.
/// More are refused when they are registered.
pub const MAX_PLUGINS: usize = 1024;

/// How long a killed plugin may take to end, on top of the grace periods, before it is left to its monitor.
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
        /// Source of the plugin that has the name.
        taken_by: String,
        /// Source of this plugin.
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

pub use replace::{DownPolicy, ReplaceError, ReplaceOutcome, Replacement};

/// All plugins of one supervisor. Cheap to clone; every method may be called from any task at any time,
/// within a tokio runtime.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    launcher: Arc<dyn Launch>,
    settings: Arc<Settings>,
    events: Events,
    /// Locked for a lookup or a change, never across an await.
    plugins: RwLock<BTreeMap<PluginName, Plugin>>,
    /// Plugins outside the table: starting to replace one, or replaced and draining. At most one for each
    /// plugin, because replacements of one plugin are serialized.
    in_transition: Mutex<Vec<Plugin>>,
    declared: DeclaredNames,
    changes: watch::Sender<u64>,
    /// Services, for shutdown; none of them is a plugin.
    services: Mutex<Vec<Service>>,
    closing: AtomicBool,
    /// Whether drivers are paused.
    paused: watch::Sender<bool>,
    /// Where approvals are stored; if unset, they are lost with this registry.
    approved: OnceLock<PathBuf>,
    /// Where events of plugins go; without it they stay in the plugins.
    event_sink: SinkSlot,
}

impl Registry {
    /// Prepares and locks the runtime directory and clears the leftovers of a killed supervisor.
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
                in_transition: Mutex::default(),
                declared: DeclaredNames::default(),
                changes: watch::Sender::new(0),
                services: Mutex::default(),
                closing: AtomicBool::new(false),
                paused: watch::Sender::new(false),
                event_sink: SinkSlot::default(),
                approved: OnceLock::new(),
            }),
        }
    }

    /// Stores approvals of plugins' actions below the data directory, for plugins registered from now on.
    /// Without this, for example in a registry for a single call, the first declaration counts as approved
    /// and is not stored. Blocking.
    ///
    /// # Errors
    /// [`SetupError`] if the directory cannot be created.
    pub fn persist_approvals(&self) -> Result<(), SetupError> {
        let data_dir = &self.inner.settings.data_dir;
        let dir = approvals::prepare(data_dir).map_err(|source| SetupError::Io {
            what: "make the place for approvals in",
            path: data_dir.clone(),
            source,
        })?;
        // A second call changes nothing.
        let _ = self.inner.approved.set(dir);
        Ok(())
    }

    /// Adds a plugin and, if it is enabled, starts it; does not wait for the start.
    ///
    /// # Errors
    /// [`RegisterError`]; a name that is taken keeps its plugin.
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
        inner.launcher.announce(&spec);
        let blocks = spec.changed_tools == ChangedTools::Block;
        let approvals = Approvals::new(&name, blocks, inner.approved.get().cloned());
        let spec = Arc::new(spec);
        let common = Arc::new(PluginContext {
            pool: Arc::new(InstancePool::new(&spec, spec.enabled, None)),
            registered: ArcSwap::new(spec.clone()),
            spec,
            capability: ArcSwapOption::empty(),
            logs: LogSink::new(&name, &inner.settings, inner.events.clone()),
            events: inner.events.clone(),
            declared: inner.declared.clone(),
            approvals: Arc::new(approvals),
            role: Mutex::new(PluginRole::Current),
            changes: inner.changes.clone(),
            paused: inner.paused.subscribe(),
            replace_lock: Arc::default(),
            last_good: LastGoodCache::default(),
            replacement_problem: ArcSwapOption::empty(),
            event_sink: inner.event_sink.clone(),
            event_counters: Arc::default(),
            starts_before: 0,
            restarts_before: BTreeMap::new(),
        });
        let plugin = Plugin::spawn(&inner.launcher, common);
        plugins.insert(name, plugin.clone());
        drop(plugins);
        self.notify_change();
        Ok(plugin)
    }

    /// Sets where events of plugins go, before plugins are registered. Only the first one counts.
    pub fn set_event_sink(&self, sink: Arc<dyn EventSink>) {
        let _ = self.inner.event_sink.set(sink);
    }

    /// Starts a Talon service and keeps it running until it is stopped or the registry is shut down; does not
    /// wait for the start. A service is not a plugin: this registry does not list it by name. Two services of
    /// one name would share a uid and a home, so stop one before starting the next. After
    /// [`shutdown`](Self::shutdown) none is started.
    pub fn service(&self, spec: ServiceSpec, link: Arc<dyn ServiceHooks>) -> Service {
        let inner = &self.inner;
        let logs = LogSink::new(&spec.name, &inner.settings, inner.events.clone());
        let stop = CancellationToken::new();
        // Held to the end, so that a shutdown either sees this service or has already set `closing`.
        let mut services = self.inner.services.lock();
        if inner.closing.load(Ordering::Acquire) {
            stop.cancel();
        }
        let service = Service::spawn(inner.launcher.clone(), spec, link, logs, stop);
        services.retain(|service| !service.has_ended());
        services.push(service.clone());
        service
    }

    /// Stops a plugin as an operator would, then removes it. Its name is free again when this returns; calls
    /// in flight had their grace period. Waits for a replacement in progress. `false`: there is no plugin of
    /// that name.
    pub async fn deregister(&self, name: &PluginName) -> bool {
        let Some((plugin, _turn)) = self.lock_for_replace(name).await else { return false };
        plugin.retire(None).await;
        plugin.end().await;
        let removed = self.write().remove(name).is_some();
        if removed {
            self.inner.declared.remove(name);
            self.notify_change();
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

    /// The plugin's last declaration.
    #[must_use]
    pub fn get_capability(&self, name: &str) -> Option<Arc<Capability>> {
        self.get(name)?.capability()
    }

    /// The executor for the plugin's calls.
    #[must_use]
    pub fn get_executor(&self, name: &str) -> Option<Executor> {
        Some(self.get(name)?.executor())
    }

    /// Every plugin's last declaration, by configured name; plugins without a handshake so far are omitted.
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

    /// Pauses all drivers between two events: nothing is started, checked, restarted or stopped until
    /// [`resume`](Self::resume), and operations on plugins wait. Used while another supervisor tries to take
    /// the processes over: if both restarted a plugin, it would run twice.
    pub fn pause(&self) {
        self.inner.paused.send_replace(true);
    }

    /// Resumes the drivers. They process what happened meanwhile.
    pub fn resume(&self) {
        self.inner.paused.send_replace(false);
    }

    /// Stops all plugins at the same time: no new calls, calls in flight may finish within `grace` (or a
    /// plugin's own shorter grace period), then Shutdown, SIGTERM and SIGKILL within `grace` once more. When
    /// this returns, at the latest some seconds after four times `grace`, no process and no socket is left.
    /// No plugin can be registered afterwards.
    ///
    /// Services stop after the plugins, which may need them to the end: they are asked to exit, then get
    /// SIGTERM and SIGKILL within twice `grace` (or their own shorter grace period).
    pub async fn shutdown(&self, grace: Duration) {
        {
            // Under the lock, so that a concurrent registration is either complete or sees `closing`.
            let _plugins = self.write();
            let _services = self.inner.services.lock();
            self.inner.closing.store(true, Ordering::Release);
        }
        self.resume();
        let mut plugins = self.list();
        self.inner
            .events
            .emit(NewEvent::new(EventKind::Supervisor, format!("shutting down {} plugins", plugins.len())));
        plugins.extend(self.inner.in_transition.lock().iter().cloned());
        let stops = plugins.iter().map(|plugin| plugin.retire(Some(grace)));
        let bound = grace.saturating_mul(2).saturating_add(KILL_WAIT);
        if tokio::time::timeout(bound, join_all(stops)).await.is_err() {
            for plugin in plugins.iter().filter(|plugin| !plugin.is_stopped()) {
                tracing::error!(plugin = %plugin.name(), "still there after SIGKILL; left to its monitor");
            }
        }
        join_all(plugins.iter().map(Plugin::end)).await;
        self.write().clear();
        self.inner.in_transition.lock().clear();
        let services = std::mem::take(&mut *self.inner.services.lock());
        join_all(services.iter().map(|service| service.stop_within(Some(grace)))).await;
        let launcher = self.inner.launcher.clone();
        // Removing files may block. The panic hook already reported a panic in there.
        let _ = tokio::task::spawn_blocking(move || launcher.remove_all()).await;
        self.notify_change();
    }

    /// Where the registry and its plugins emit events.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.inner.events
    }

    fn notify_change(&self) {
        self.inner.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<PluginName, Plugin>> {
        self.inner.plugins.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<PluginName, Plugin>> {
        self.inner.plugins.write()
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
