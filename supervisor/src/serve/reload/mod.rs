//! Changes while a supervisor runs: the configuration read anew, and single plugins looked at anew.
//!
//! ```text
//! SIGHUP · `talon reload` · a watched file
//!        │ load and check, whole: a refused one changes nothing
//!        ▼
//! compare with what runs, key by key ─► what needs a restart is only said
//!        │
//!        ├─ door: limits, guard        stacks anew where their limits differ
//!        ├─ host.sock: peers, group    for connections from now on
//!        ├─ log.level
//!        └─ plugins, at once           added, removed, replaced beside the old one, changed in place
//! ```
//!
//! One at a time: a further one waits for its turn and then compares with what the first made.

mod answer;
mod apply;
mod hangup;
mod plan;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::{ArcSwap, ArcSwapOption};
use talon_plugin::discover::Refused;
use talon_plugin::{EventKind, Events, IfDown, NewEvent, PluginName, Registry, ReplaceError, Replaced};
use talon_sanitize::{Raw, Sanitized};

pub(crate) use self::answer::{Change, Reloaded};
pub(super) use self::hangup::Hangups;
use self::plan::Plan;
use super::discover;
use super::notify::Manager;
use crate::audit::Audit;
use crate::config::{self, Config, ConfigErrors, LoadOptions, Loaded, PeerPolicy};
use crate::door::Door;
use crate::state::Keeper;
use crate::{agent, host};

/// The longest text in which a refused configuration is kept for `talon status`, in bytes: some ten problems, each with its place.
const MAX_PROBLEM_BYTES: usize = 4 << 10;

/// What changes configuration and plugins of a running supervisor. Cheap to clone.
#[derive(Clone)]
pub struct Reloader {
    inner: Arc<Inner>,
}

/// What a reloader changes.
pub(super) struct Parts {
    pub(super) options: LoadOptions,
    pub(super) config: Arc<Config>,
    pub(super) config_file: Option<PathBuf>,
    pub(super) registry: Registry,
    pub(super) door: Arc<Door>,
    pub(super) events: Events,
    pub(super) peers: Arc<ArcSwap<PeerPolicy>>,
    pub(super) keeper: Option<Keeper>,
    /// Told of its part.
    pub(super) agent: Option<agent::Keeper>,
    /// What was refused at the start.
    pub(super) refused: Vec<Refused>,
    /// The largest arguments that `host.sock` takes, which is fixed when it begins to serve.
    pub(super) largest_arguments: usize,
    /// What it does by itself is recorded, too.
    pub(super) audit: Audit,
    /// Told when a reload begins and when it is over.
    pub(super) manager: Manager,
}

struct Inner {
    parts: Parts,
    running: ArcSwap<Running>,
    problem: ArcSwapOption<Sanitized>,
    /// Held by the one reload that goes on.
    turn: tokio::sync::Mutex<()>,
    /// Counts up when a configuration comes into force.
    changes: tokio::sync::watch::Sender<u64>,
}

/// The configuration that is in force.
#[derive(Debug, Clone)]
struct Running {
    config: Arc<Config>,
    at: SystemTime,
    refused: Arc<Vec<Refused>>,
}

/// Why a plugin was not replaced by what it is now. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceFailure {
    /// Nothing says any more what it is.
    #[error(
        "{plugin} is neither in the configuration nor in plugin_dir any more, and goes on as it is; put it back, or stop it with \
         `talon plugin stop {plugin}`"
    )]
    Gone {
        /// Which plugin.
        plugin: PluginName,
    },
    /// It does not pass its checks.
    #[error("{plugin} is refused as it is now, and goes on as it was: {reason}")]
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
    pub(super) fn new(parts: Parts) -> Self {
        let running = Running {
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

    /// The configuration that is in force, as far as it can be without a restart.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.inner.running.load().config)
    }

    /// When it was read.
    #[must_use]
    pub fn read_at(&self) -> SystemTime {
        self.inner.running.load().at
    }

    /// What is wrong with the last one that was refused; `None` once one was accepted.
    #[must_use]
    pub fn problem(&self) -> Option<Sanitized> {
        self.inner.problem.load().as_deref().cloned()
    }

    /// What looks like a plugin and is not run, as of the last look at all of them.
    #[must_use]
    pub fn refused(&self) -> Arc<Vec<Refused>> {
        Arc::clone(&self.inner.running.load().refused)
    }

    /// Notes what a look at all plugins refused.
    pub(super) fn note_refused(&self, refused: Option<Vec<Refused>>) {
        let Some(refused) = refused.map(Arc::new) else { return };
        self.inner
            .running
            .rcu(|running| Running { refused: Arc::clone(&refused), ..Running::clone(running) });
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.parts().registry
    }

    /// The file that is read, if there was one at the start.
    pub(super) fn config_file(&self) -> Option<&Path> {
        self.parts().config_file.as_deref()
    }

    fn parts(&self) -> &Parts {
        &self.inner.parts
    }

    /// Counts up when a configuration comes into force.
    pub(super) fn subscribe(&self) -> tokio::sync::watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Reads the configuration anew and brings it into force, or only says what that would do. It is carried out whether anybody
    /// waits for it or not. A problem is an answer, too: nothing has changed then.
    pub async fn reload(&self, dry_run: bool) -> Reloaded {
        let reloader = self.clone();
        match tokio::spawn(async move { reloader.reload_now(dry_run).await }).await {
            Ok(reloaded) => reloaded,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Reloads because of what happened to us, and not because a client asked: that is recorded here, since no request is.
    pub(super) async fn reload_by_itself(&self, why: &str) {
        let reloaded = self.reload(false).await;
        let problems = (!reloaded.accepted).then(|| reloaded.problems.join("; "));
        self.record("reload", why, problems.as_deref());
    }

    /// Records what was done without a request.
    pub(super) fn record(&self, verb: &str, subject: &str, problem: Option<&str>) {
        self.parts().audit.own_operation(verb, subject, problem.map_or(Ok(()), Err));
    }

    async fn reload_now(&self, dry_run: bool) -> Reloaded {
        let _turn = self.inner.turn.lock().await;
        let Parts { options, registry, door, .. } = &self.inner.parts;
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
        let wanted = Arc::new(loaded.config.within(&running));
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
        self.tell(&reloaded);
        reloaded
    }

    /// Looks at a plugin's files anew, and replaces it by what they are now under the configuration that is in force.
    ///
    /// # Errors
    /// `ReplaceFailure`; what served before serves on.
    pub async fn replace(&self, name: &PluginName, if_down: IfDown) -> Result<Replaced, ReplaceFailure> {
        let (config, plugin) = (self.config(), name.clone());
        let found = blocking(move || discover::find_one(&config, &plugin)).await;
        let plugin = || name.clone();
        match found {
            Ok(Some(spec)) => Ok(self.parts().registry.replace(spec, if_down).await?),
            Ok(None) => Err(ReplaceFailure::Gone { plugin: plugin() }),
            Err(refused) => {
                let reason = Raw::from(&refused.reason).line();
                self.parts().registry.not_replaced(name, &reason);
                Err(ReplaceFailure::Refused { plugin: plugin(), reason })
            }
        }
    }

    /// Registers a plugin that lies in the plugin directory and is not registered yet.
    ///
    /// # Errors
    /// [`Refused`] if it does not pass its checks. What is gone again by now is no error.
    pub(super) async fn add(&self, name: &PluginName) -> Result<(), Refused> {
        let (config, plugin) = (self.config(), name.clone());
        let Some(spec) = blocking(move || discover::find_one(&config, &plugin)).await? else { return Ok(()) };
        let path = spec.program.clone();
        match self.registry().register(spec) {
            Ok(_) => Ok(()),
            Err(error) => Err(Refused { name: name.to_string(), path, reason: error.to_string() }),
        }
    }

    /// Everything that is not a plugin and cannot fail by halves.
    fn bring_into_force(&self, running: &Config, wanted: &Arc<Config>, plan: &Plan) -> Result<(), String> {
        let Parts { door, peers, keeper, .. } = self.parts();
        door.adopt(Arc::clone(wanted)).map_err(|error| format!("guard.forbidden_patterns: {error}"))?;
        // Also if nothing about it differs: names are looked up in the user database anew.
        peers.store(Arc::new(wanted.peers()));
        if let Some(keeper) = keeper {
            let quotas = Arc::clone(wanted);
            keeper.set_quotas(Arc::new(move |plugin| quotas.state_quota(plugin.as_str())));
        }
        if running.log.level != wanted.log.level
            && let Some(Err(error)) = talon_telemetry::handle().map(|log| log.set_level(&wanted.log.level))
        {
            // It was checked when it was loaded.
            tracing::error!(%error, "log.level stays as it was");
        }
        let refused = Arc::new(plan.refused.clone());
        self.inner.running.store(Arc::new(Running {
            config: Arc::clone(wanted),
            at: SystemTime::now(),
            refused,
        }));
        self.inner.changes.send_modify(|count| *count = count.wrapping_add(1));
        Ok(())
    }

    /// What may fail without anything else being the worse for it. Gives what is to be said of that.
    async fn beside_plugins(&self, running: &Config, wanted: &Arc<Config>) -> Vec<String> {
        let mut warnings = Vec::new();
        if running.host.group != wanted.host.group {
            let (dir, gid) = (wanted.runtime_dir.clone(), wanted.host_gid());
            let agent = self.parts().agent.is_some().then_some(agent::SOCKET_NAME);
            for name in [host::SOCKET_NAME].into_iter().chain(agent) {
                let dir = dir.clone();
                if let Err(error) = blocking(move || host::regroup(&dir, name, gid)).await {
                    warnings.push(format!("host.group: {error}"));
                }
            }
        }
        if let Some(agent) = &self.parts().agent {
            warnings.extend(agent::hand_over(wanted, agent).await);
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

    fn answer(&self, running: &Config, wanted: &Config, loaded: &Loaded, plan: &Plan) -> Reloaded {
        let keys = |found: std::collections::BTreeSet<config::KeyPath>| {
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        Reloaded {
            accepted: true,
            problems: Vec::new(),
            warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
            changed: keys(running.differences(wanted)),
            needs_restart: keys(wanted.differences(&loaded.config)),
            plugins: plan.steps.iter().map(Change::planned).collect(),
            left: plan.left,
            config_file: loaded.file.clone(),
        }
    }

    fn refuse(&self, problems: Vec<String>, dry_run: bool) -> Reloaded {
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
        Reloaded { problems, config_file, ..Reloaded::default() }
    }

    fn tell(&self, reloaded: &Reloaded) {
        self.inner.problem.store(None);
        metrics::counter!("talon_config_reloads_total", "outcome" => "accepted").increment(1);
        metrics::gauge!("talon_config_refused").set(0.0);
        // To be shown. Before 1970 there is no such number, and 0 is as good as any.
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

/// Runs what reads files. A panic in there goes on here.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
