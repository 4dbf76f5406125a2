//! Changes at runtime: reloads of the configuration and of single plugins.
//!
//! ```text
//! SIGHUP · `talon reload` · a watched file
//!        │ load and check, as a whole: an invalid one changes nothing
//!        ▼
//! compare with the running one, key by key ─► keys that need a restart are only reported
//!        │
//!        ├─ dispatcher: limits, guard  new stacks where their limits differ
//!        ├─ host.sock: peers, group    for connections from now on
//!        ├─ log.level
//!        └─ plugins, concurrently      added, removed, replaced beside the old one, changed in place
//! ```
//!
//! One reload at a time: a further one waits, and then compares with the result of the first.

mod apply;
mod outcome;
mod plan;
mod sighup;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::{ArcSwap, ArcSwapOption};
use talon_plugin::{DownPolicy, EventKind, Events, NewEvent, Registry, ReplaceError, Replacement};
use talon_plugin_config::PluginName;
use talon_plugin_config::discover::RejectedPlugin;
use talon_sanitize::{Raw, Sanitized};

pub(crate) use self::outcome::{PluginOutcome, ReloadOutcome};
use self::plan::Plan;
pub(super) use self::sighup::ReloadSignals;
use super::discover;
use super::notify::Manager;
use crate::audit::Audit;
use crate::config::{self, Config, ConfigErrors, LoadOptions, Loaded, PeerPolicy};
use crate::dispatch::Dispatcher;
use crate::state::StateSupervisor;
use crate::{agent, host};

/// Maximum length of the stored problems of a rejected configuration for `talon status`, in bytes: some ten
/// problems.
const MAX_PROBLEM_BYTES: usize = 4 << 10;

/// Changes configuration and plugins of a running supervisor. Cheap to clone.
#[derive(Clone)]
pub struct Reloader {
    inner: Arc<Inner>,
}

/// The parts that a reloader changes.
pub(super) struct ReloaderParts {
    pub(super) options: LoadOptions,
    pub(super) config: Arc<Config>,
    pub(super) config_file: Option<PathBuf>,
    pub(super) registry: Registry,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) events: Events,
    pub(super) peers: Arc<ArcSwap<PeerPolicy>>,
    pub(super) state: Option<StateSupervisor>,
    /// Receives its part of the configuration.
    pub(super) agent: Option<agent::AgentSupervisor>,
    /// The plugins that were refused at the start.
    pub(super) refused: Vec<RejectedPlugin>,
    /// The largest arguments that `host.sock` accepts, which is fixed when it starts to serve.
    pub(super) largest_arguments: usize,
    /// Records reloads that no client requested, too.
    pub(super) audit: Audit,
    /// Receives the start and end of each reload.
    pub(super) manager: Manager,
}

struct Inner {
    parts: ReloaderParts,
    running: ArcSwap<ActiveConfig>,
    problem: ArcSwapOption<Sanitized>,
    /// Held during a reload.
    turn: tokio::sync::Mutex<()>,
    /// Incremented when a configuration is applied.
    changes: tokio::sync::watch::Sender<u64>,
}

/// The active configuration.
#[derive(Debug, Clone)]
struct ActiveConfig {
    config: Arc<Config>,
    at: SystemTime,
    refused: Arc<Vec<RejectedPlugin>>,
}

/// Why a plugin was not replaced. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceFailure {
    /// Neither the configuration nor the plugin directory has it any more.
    #[error(
        "{plugin} is neither in the configuration nor in plugin_dir any more, and keeps running; put it back, or stop it with \
         `talon plugin stop {plugin}`"
    )]
    Gone {
        /// Which plugin.
        plugin: PluginName,
    },
    /// It does not pass its checks.
    #[error("{plugin} is refused in its new version, and the old one keeps running: {reason}")]
    Refused {
        /// Which plugin.
        plugin: PluginName,
        /// Why.
        reason: Sanitized,
    },
    /// It was not replaced.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
}

impl Reloader {
    pub(super) fn new(parts: ReloaderParts) -> Self {
        let running = ActiveConfig {
            config: Arc::clone(&parts.config),
            at: SystemTime::now(),
            refused: Arc::new(parts.refused.clone()),
        };
        let inner = Inner {
            parts,
            running: ArcSwap::from_pointee(running),
            problem: ArcSwapOption::empty(),
            turn: tokio::sync::Mutex::new(()),
            changes: tokio::sync::watch::Sender::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The active configuration, as far as it applies without a restart.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.inner.running.load().config)
    }

    /// When it was read.
    #[must_use]
    pub fn read_at(&self) -> SystemTime {
        self.inner.running.load().at
    }

    /// The problems of the latest configuration if it was rejected; `None` once one was accepted.
    #[must_use]
    pub fn problem(&self) -> Option<Sanitized> {
        self.inner.problem.load().as_deref().cloned()
    }

    /// The refused plugins of the latest scan.
    #[must_use]
    pub fn refused(&self) -> Arc<Vec<RejectedPlugin>> {
        Arc::clone(&self.inner.running.load().refused)
    }

    /// Stores the refused plugins of a scan.
    pub(super) fn note_refused(&self, refused: Option<Vec<RejectedPlugin>>) {
        let Some(refused) = refused.map(Arc::new) else { return };
        self.inner
            .running
            .rcu(|running| ActiveConfig { refused: Arc::clone(&refused), ..ActiveConfig::clone(running) });
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.parts().registry
    }

    /// The config file, if there was one at the start.
    pub(super) fn config_file(&self) -> Option<&Path> {
        self.parts().config_file.as_deref()
    }

    fn parts(&self) -> &ReloaderParts {
        &self.inner.parts
    }

    /// Incremented when a configuration is applied.
    pub(super) fn subscribe(&self) -> tokio::sync::watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Reloads the configuration, or (with `dry_run`) only reports what that would do. It runs to its end
    /// even if the caller stops waiting. A rejected configuration is a normal result, and changes nothing.
    pub async fn reload(&self, dry_run: bool) -> ReloadOutcome {
        let reloader = self.clone();
        match tokio::spawn(async move { reloader.reload_now(dry_run).await }).await {
            Ok(reloaded) => reloaded,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// A reload that no client requested: it is recorded in the audit log here.
    pub(super) async fn reload_automatically(&self, why: &str) {
        let reloaded = self.reload(false).await;
        let problems = (!reloaded.accepted).then(|| reloaded.problems.join("; "));
        self.record("reload", why, problems.as_deref());
    }

    /// Records an operation that no client requested.
    pub(super) fn record(&self, verb: &str, subject: &str, problem: Option<&str>) {
        self.parts().audit.supervisor_operation(verb, subject, problem.map_or(Ok(()), Err));
    }

    async fn reload_now(&self, dry_run: bool) -> ReloadOutcome {
        let _turn = self.inner.turn.lock().await;
        let ReloaderParts { options, registry, dispatcher: door, .. } = &self.inner.parts;
        if door.is_draining() {
            return self.refuse(
                vec!["the supervisor is stopping: nothing is reloaded any more".to_owned()],
                dry_run,
            );
        }
        let _told = if dry_run { None } else { self.parts().manager.reload() };
        let options = options.clone();
        let loaded = match blocking(move || config::load(&options)).await {
            Ok(loaded) => loaded,
            Err(errors) => return self.refuse(texts(&errors), dry_run),
        };
        let running = self.config();
        let wanted = Arc::new(loaded.config.applicable_to(&running));
        let looking = Arc::clone(&wanted);
        let found = blocking(move || discover::find(&looking)).await;
        let specs: Vec<_> = registry.list().iter().map(talon_plugin::Plugin::spec).collect();
        let plan = plan::plan(&running, &wanted, &specs, found);
        let mut reloaded = self.answer(&running, &wanted, &loaded, &plan);
        if dry_run {
            return reloaded;
        }
        if let Err(error) = self.bring_into_force(&running, &wanted, &plan) {
            return self.refuse(vec![error], dry_run);
        }
        reloaded.warnings.extend(self.beside_plugins(&running, &wanted).await);
        reloaded.plugins = self.carry_out(plan).await;
        self.report(&reloaded);
        reloaded
    }

    /// Scans a plugin's files, and replaces it by its new version under the active configuration.
    ///
    /// # Errors
    /// `ReplaceFailure`; then the running version stays.
    pub async fn replace(
        &self,
        name: &PluginName,
        if_down: DownPolicy,
    ) -> Result<Replacement, ReplaceFailure> {
        let (config, plugin) = (self.config(), name.clone());
        let found = blocking(move || discover::find_one(&config, &plugin)).await;
        let plugin = || name.clone();
        match found {
            Ok(Some(spec)) => Ok(self.parts().registry.replace(spec, if_down).await?),
            Ok(None) => Err(ReplaceFailure::Gone { plugin: plugin() }),
            Err(refused) => {
                let reason = Raw::from(&refused.reason).line();
                self.parts().registry.record_refused_replacement(name, &reason);
                Err(ReplaceFailure::Refused { plugin: plugin(), reason })
            }
        }
    }

    /// Registers a new plugin from the plugin directory.
    ///
    /// # Errors
    /// [`Refused`] if it does not pass its checks. That it has vanished again is not an error.
    pub(super) async fn add(&self, name: &PluginName) -> Result<(), RejectedPlugin> {
        let (config, plugin) = (self.config(), name.clone());
        let Some(spec) = blocking(move || discover::find_one(&config, &plugin)).await? else { return Ok(()) };
        let path = spec.program.clone();
        match self.registry().register(spec) {
            Ok(_) => Ok(()),
            Err(error) => Err(RejectedPlugin { name: name.to_string(), path, reason: error.to_string() }),
        }
    }

    /// Applies everything but plugins that either succeeds or changes nothing.
    fn bring_into_force(&self, running: &Config, wanted: &Arc<Config>, plan: &Plan) -> Result<(), String> {
        let ReloaderParts { dispatcher: door, peers, state: keeper, .. } = self.parts();
        door.apply_config(Arc::clone(wanted))
            .map_err(|error| format!("guard.forbidden_patterns: {error}"))?;
        // Also without changes: names are looked up again in the user database.
        peers.store(Arc::new(wanted.peers()));
        if let Some(keeper) = keeper {
            let quotas = Arc::clone(wanted);
            keeper.set_quotas(Arc::new(move |plugin| quotas.state_quota(plugin.as_str())));
        }
        if running.log.level != wanted.log.level
            && let Some(Err(error)) = talon_telemetry::handle().map(|log| log.set_level(&wanted.log.level))
        {
            // It was checked when the configuration was loaded.
            tracing::error!(%error, "log.level stays as it was");
        }
        let refused = Arc::new(plan.refused.clone());
        self.inner.running.store(Arc::new(ActiveConfig {
            config: Arc::clone(wanted),
            at: SystemTime::now(),
            refused,
        }));
        self.inner.changes.send_modify(|count| *count = count.wrapping_add(1));
        Ok(())
    }

    /// Applies parts whose failure does not affect anything else. Returns warnings.
    async fn beside_plugins(&self, running: &Config, wanted: &Arc<Config>) -> Vec<String> {
        let mut warnings = Vec::new();
        if running.host.group != wanted.host.group {
            let (dir, gid) = (wanted.runtime_dir.clone(), wanted.host_gid());
            let agent = self.parts().agent.is_some().then_some(agent::SOCKET_NAME);
            for name in [host::SOCKET_NAME].into_iter().chain(agent) {
                let dir = dir.clone();
                if let Err(error) = blocking(move || host::set_group(&dir, name, gid)).await {
                    warnings.push(format!("host.group: {error}"));
                }
            }
        }
        if let Some(agent) = &self.parts().agent {
            warnings.extend(agent::configure(wanted, agent).await);
        }
        let needed = super::largest_arguments(wanted, &self.parts().registry);
        if needed > self.parts().largest_arguments {
            warnings.push(format!(
                "max_argument_bytes: host.sock takes requests of {} bytes until the next start of talon",
                self.parts().largest_arguments
            ));
        }
        warnings
    }

    fn answer(&self, running: &Config, wanted: &Config, loaded: &Loaded, plan: &Plan) -> ReloadOutcome {
        let keys = |found: std::collections::BTreeSet<config::KeyPath>| {
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        ReloadOutcome {
            accepted: true,
            problems: Vec::new(),
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
            changed: keys(running.differences(wanted)),
            needs_restart: keys(wanted.differences(&loaded.config)),
            plugins: plan.steps.iter().map(PluginOutcome::planned).collect(),
            left: plan.left,
            config_file: loaded.file.clone(),
        }
    }

    fn refuse(&self, problems: Vec<String>, dry_run: bool) -> ReloadOutcome {
        if !dry_run {
            let text = problems.join("; ");
            let text = Raw::from(&text).line_within(MAX_PROBLEM_BYTES);
            tracing::error!("the configuration is refused, and the one before stays: {text}");
            self.parts().events.emit(
                NewEvent::new(EventKind::ConfigRefused, format!("refused, the one before stays: {text}"))
                    .field("problems", problems.len()),
            );
            self.inner.problem.store(Some(Arc::new(text)));
            metrics::counter!("talon_config_reloads_total", "outcome" => "refused").increment(1);
            metrics::gauge!("talon_config_refused").set(1.0);
        }
        let config_file = self.parts().config_file.clone();
        ReloadOutcome { problems, config_file, ..ReloadOutcome::default() }
    }

    fn report(&self, reloaded: &ReloadOutcome) {
        self.inner.problem.store(None);
        metrics::counter!("talon_config_reloads_total", "outcome" => "accepted").increment(1);
        metrics::gauge!("talon_config_refused").set(0.0);
        // For display only: a clock before 1970 shows as 0.
        let at = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        metrics::gauge!("talon_config_loaded_timestamp_seconds").set(at.as_secs_f64());
        for warning in &reloaded.warnings {
            tracing::warn!("{warning}");
        }
        let (changed, later) = (reloaded.changed.join(", "), reloaded.needs_restart.join(", "));
        let plugins: Vec<String> =
            reloaded.plugins.iter().map(|change| format!("{} {}", change.plugin, change.what)).collect();
        let plugins = plugins.join(", ");
        tracing::info!(
            changed,
            needs_restart = later,
            plugins,
            left = reloaded.left,
            "the configuration was read anew"
        );
        self.parts().events.emit(
            NewEvent::new(EventKind::ConfigReloaded, format!("read anew; plugins: {plugins}"))
                .field("changed", changed)
                .field("needs_restart", later),
        );
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("read_at", &self.read_at()).finish_non_exhaustive()
    }
}

fn texts(errors: &ConfigErrors) -> Vec<String> {
    errors.problems().iter().map(ToString::to_string).collect()
}

/// Runs blocking file access. Panics are propagated.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
