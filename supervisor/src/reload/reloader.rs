//! The reloader: loads, compares, applies and reports.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::{ArcSwap, ArcSwapOption};
use talon_plugin::{Events, Registry};
use talon_plugin_config::discover::RejectedPlugin;
use talon_sanitize::{Sanitized, SettingsError};

use super::bounded_read::BoundedReader;
use super::outcome::{PluginOutcome, ReloadOutcome};
use super::overlay_write::OverlayWrite;
use super::plan::{self, Plan};
use super::trigger::ReloadTrigger;
use crate::audit::Audit;
use crate::blocking::blocking;
use crate::config::{self, Config, ConfigErrors, LoadOptions, Loaded, PeerPolicy};
use crate::dispatch::Dispatcher;
use crate::gateway::GatewaySupervisor;
use crate::notify::Manager;
use crate::socket::{HOST_SOCKET_NAME, grant_peers, set_group};
use crate::state::StateSupervisor;
use crate::{agent, discover};

/// How many plugins a refusal names; the others are counted.
const MAX_NAMED: usize = 8;

/// Changes configuration and plugins of a running supervisor. Cheap to clone.
#[derive(Clone)]
pub struct Reloader {
    inner: Arc<Inner>,
}

/// The parts that a reloader changes.
pub(crate) struct ReloaderParts {
    pub(crate) options: LoadOptions,
    pub(crate) config: Arc<Config>,
    /// What the configuration was made of at the start.
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) registry: Registry,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) events: Events,
    pub(crate) peers: Arc<ArcSwap<PeerPolicy>>,
    pub(crate) state: Option<StateSupervisor>,
    /// Receives its part of the configuration.
    pub(crate) agent: Option<agent::AgentSupervisor>,
    /// The gateway, which is told again.
    pub(crate) gateway: Option<GatewaySupervisor>,
    /// The plugins that were refused at the start.
    pub(crate) refused: Vec<RejectedPlugin>,
    /// The largest arguments that `host.sock` accepts, which is fixed when it starts to serve.
    pub(crate) largest_arguments: usize,
    /// Records reloads that no client requested, too.
    pub(crate) audit: Audit,
    /// Receives the start and end of each reload.
    pub(crate) manager: Manager,
}

struct Inner {
    parts: ReloaderParts,
    running: ArcSwap<ActiveConfig>,
    /// Why the latest configuration was rejected.
    problem: ArcSwapOption<Sanitized>,
    /// Held during a reload.
    turn: tokio::sync::Mutex<()>,
    reader: BoundedReader,
    /// Incremented when a configuration is applied.
    changes: tokio::sync::watch::Sender<u64>,
}

/// The active configuration.
#[derive(Debug, Clone)]
struct ActiveConfig {
    config: Arc<Config>,
    at: SystemTime,
    refused: Arc<Vec<RejectedPlugin>>,
    /// What it was made of. Its own configuration has also what holds after a restart.
    loaded: Arc<Loaded>,
}

/// The configuration to take over.
pub(super) enum NextConfig {
    /// To be read from these sources.
    Unread(LoadOptions),
    /// It was read and checked.
    Read(Box<Loaded>),
}

impl Reloader {
    pub(crate) fn new(parts: ReloaderParts) -> Self {
        let running = ActiveConfig {
            config: Arc::clone(&parts.config),
            at: SystemTime::now(),
            refused: Arc::new(parts.refused.clone()),
            loaded: Arc::clone(&parts.loaded),
        };
        let inner = Inner {
            parts,
            running: ArcSwap::from_pointee(running),
            problem: ArcSwapOption::empty(),
            turn: tokio::sync::Mutex::new(()),
            reader: BoundedReader::new(),
            changes: tokio::sync::watch::Sender::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The active configuration, as far as it applies without a restart.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.inner.running.load().config)
    }

    /// What it was made of. Its configuration has also values that hold after a restart.
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.inner.running.load().loaded)
    }

    /// Waits until no other change is made.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.inner.turn.lock().await
    }

    /// Reads files, within bounds.
    pub(super) fn reader(&self) -> &BoundedReader {
        &self.inner.reader
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

    pub(super) fn set_problem(&self, problem: Option<Sanitized>) {
        self.inner.problem.store(problem.map(Arc::new));
    }

    /// The refused plugins of the latest scan.
    #[must_use]
    pub fn refused(&self) -> Arc<Vec<RejectedPlugin>> {
        Arc::clone(&self.inner.running.load().refused)
    }

    /// Stores the refused plugins of a scan.
    pub(crate) fn note_refused(&self, refused: Option<Vec<RejectedPlugin>>) {
        let Some(refused) = refused.map(Arc::new) else { return };
        self.inner
            .running
            .rcu(|running| ActiveConfig { refused: Arc::clone(&refused), ..ActiveConfig::clone(running) });
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.parts().registry
    }

    /// The config file, if there was one at the start.
    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.parts().loaded.file.as_deref()
    }

    pub(super) fn parts(&self) -> &ReloaderParts {
        &self.inner.parts
    }

    /// Incremented when a configuration is applied.
    pub(crate) fn subscribe(&self) -> tokio::sync::watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Reloads the configuration, or (with `dry_run`) only reports what that would do. It runs to its end
    /// even if the caller stops waiting. A rejected configuration is a normal result, and changes nothing.
    pub async fn reload(&self, dry_run: bool) -> ReloadOutcome {
        self.run(dry_run, ReloadTrigger::Request).await
    }

    async fn run(&self, dry_run: bool, trigger: ReloadTrigger) -> ReloadOutcome {
        let reloader = self.clone();
        match tokio::spawn(async move { reloader.reload_now(dry_run, trigger).await }).await {
            Ok(reloaded) => reloaded,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// A reload that no client requested: it is recorded in the audit log here.
    pub(crate) async fn reload_automatically(&self, trigger: ReloadTrigger) {
        let reloaded = self.run(false, trigger).await;
        let problems = (!reloaded.accepted).then(|| reloaded.problems.join("; "));
        self.record("reload", trigger.description(), problems.as_deref());
    }

    /// Records an operation that no client requested.
    pub(crate) fn record(&self, verb: &str, subject: &str, problem: Option<&str>) {
        self.parts().audit.supervisor_operation(verb, subject, problem.map_or(Ok(()), Err));
    }

    async fn reload_now(&self, dry_run: bool, trigger: ReloadTrigger) -> ReloadOutcome {
        let _turn = self.turn().await;
        let options = self.parts().options.clone();
        self.take_over(NextConfig::Unread(options), dry_run, trigger, None).await
    }

    /// Loads what is not loaded yet, compares and applies, for who has the turn. An overlay is written once everything else is known to fit.
    pub(super) async fn take_over(
        &self,
        next: NextConfig,
        dry_run: bool,
        trigger: ReloadTrigger,
        overlay: Option<OverlayWrite>,
    ) -> ReloadOutcome {
        let ReloaderParts { registry, dispatcher, .. } = &self.inner.parts;
        // Whoever asked for a change of the overlay hears why it is refused; what is in force is as it was.
        let quiet = dry_run || trigger == ReloadTrigger::Overlay;
        if dispatcher.is_draining() {
            let problem = "the supervisor is stopping: nothing is reloaded any more".to_owned();
            return self.refuse(vec![problem], quiet);
        }
        let _told = if dry_run { None } else { self.parts().manager.reload() };
        let loaded = match next {
            NextConfig::Read(loaded) => *loaded,
            NextConfig::Unread(options) => {
                match self.inner.reader.read(move || config::load(&options)).await {
                    Ok(Ok(loaded)) => loaded,
                    Ok(Err(errors)) => return self.refuse(texts(&errors), quiet),
                    Err(stuck) => return self.refuse(vec![stuck.to_string()], quiet),
                }
            }
        };
        let running = self.config();
        let wanted = Arc::new(loaded.config.applicable_to(&running));
        let looking = Arc::clone(&wanted);
        let found = match self.inner.reader.read(move || discover::find(&looking)).await {
            Ok(found) => found,
            Err(stuck) => return self.refuse(vec![stuck.to_string()], quiet),
        };
        let found_names = discover::FoundNames::of(&found, &wanted);
        let specs: Vec<_> = registry.list().iter().map(talon_plugin::Plugin::spec).collect();
        let plan = plan::plan(&running, &wanted, &specs, found);
        if let Some(problem) = self.emptied(&loaded, &plan) {
            return self.refuse(vec![problem], quiet);
        }
        let unknown = discover::unknown_overrides(&loaded, &found_names);
        let mut reloaded = self.answer(&running, &wanted, &loaded, &plan);
        reloaded.warnings.extend(unknown.iter().map(ToString::to_string));
        if dry_run {
            return reloaded;
        }
        if let Some(write) = &overlay
            && let Err(error) = write.commit().await
        {
            return self.refuse(vec![error.to_string()], quiet);
        }
        if let Err(error) = self.bring_into_force(&running, &wanted, loaded, &plan) {
            if let Some(write) = &overlay {
                write.undo().await;
            }
            return self.refuse(vec![format!("guard.forbidden_patterns: {error}")], quiet);
        }
        reloaded.warnings.extend(self.beside_plugins(&running, &wanted, trigger).await);
        reloaded.plugins = self.carry_out(plan).await;
        self.report(&reloaded);
        reloaded
    }

    /// Applies everything but plugins that either succeeds or changes nothing.
    fn bring_into_force(
        &self,
        running: &Config,
        wanted: &Arc<Config>,
        loaded: Loaded,
        plan: &Plan,
    ) -> Result<(), SettingsError> {
        let ReloaderParts { dispatcher, peers, state: keeper, agent, .. } = self.parts();
        dispatcher.apply_config(Arc::clone(wanted))?;
        // Also without changes: names are looked up again in the user database.
        peers.store(Arc::new(wanted.peers()));
        if let Some(keeper) = keeper {
            let quotas = Arc::clone(wanted);
            keeper.set_quotas(Arc::new(move |plugin| quotas.state_quota(plugin.as_str())));
        }
        if let Some(agent) = agent {
            agent.set_model_grants(Arc::clone(wanted));
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
            loaded: Arc::new(loaded),
        }));
        self.inner.changes.send_modify(|count| *count = count.wrapping_add(1));
        Ok(())
    }

    /// Why a file that said something and now says nothing is refused: to remove every plugin was hardly
    /// meant.
    fn emptied(&self, loaded: &Loaded, plan: &Plan) -> Option<String> {
        let removed = plan.removed();
        if loaded.file_has_values || !self.inner.running.load().loaded.file_has_values || removed.is_empty() {
            return None;
        }
        let what = match (&loaded.file, &self.parts().loaded.file) {
            (Some(file), _) => format!("{}: has no key with a value", file.display()),
            (None, Some(file)) => format!("{}: there is no such file any more", file.display()),
            (None, None) => return None,
        };
        let named = removed.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = match removed.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "{what}, which would remove {named}{more} (put the configuration back; if no plugin is to run, write `plugins: {{}}`)"
        ))
    }

    /// Applies parts whose failure does not affect anything else. Returns warnings.
    async fn beside_plugins(
        &self,
        running: &Config,
        wanted: &Arc<Config>,
        trigger: ReloadTrigger,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if running.host.group != wanted.host.group {
            let (dir, gid) = (wanted.runtime_dir.clone(), wanted.host_gid());
            let agent = self.parts().agent.is_some().then_some(agent::SOCKET_NAME);
            for name in [HOST_SOCKET_NAME].into_iter().chain(agent) {
                let dir = dir.clone();
                if let Err(error) = blocking(move || set_group(&dir, name, gid)).await {
                    warnings.push(format!("host.group: {error}"));
                }
            }
        }
        if running.host != wanted.host {
            let agent = self.parts().agent.is_some().then_some(agent::SOCKET_NAME);
            for name in [HOST_SOCKET_NAME].into_iter().chain(agent) {
                let wanted = Arc::clone(wanted);
                if let Err(error) = blocking(move || grant_peers(&wanted, name)).await {
                    warnings.push(format!("host.peers: {error}"));
                }
            }
        }
        if let Some(agent) = &self.parts().agent {
            warnings.extend(agent::configure(wanted, agent, trigger.is_by_operator()).await);
        }
        if let Some(gateway) = &self.parts().gateway {
            warnings.extend(gateway.configure(wanted).await);
        }
        let needed = self.parts().dispatcher.largest_arguments();
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
            plugins: plan
                .steps
                .iter()
                .map(PluginOutcome::planned)
                .chain(plan.not_started.iter().map(PluginOutcome::not_started))
                .collect(),
            left: plan.left,
            config_file: loaded.file.clone(),
        }
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
