//! The supervisor's start, its life and its end.
//!
//! ```text
//! log ─► jail's image ─► runtime directory (lock) ─► state ─► host.sock ─► plugins ─► ready
//!                                                                                     │ SIGTERM, SIGINT
//! exit 0 ◄─ socket removed ◄─ plugins, then state stopped ◄─ calls in flight finished ◄┘
//! ```
//!
//! Whatever fails before *ready* undoes what came before it, by dropping it.

mod descriptors;
mod discover;
pub(crate) mod kept;
mod kin;
mod peers;
mod signals;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use talon_plugin::{EventKind, Events, NewEvent, Plugin, Registry, SetupError, State};
use talon_sanitize::{Sanitizer, Settings, SettingsError};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Loaded};
use crate::door::Door;
use crate::host::{About, BindError, HostService, Operators, SOCKET_NAME, ServeError, Server, bind_host};
use crate::state::{NoProgram, NotOpened};
pub(crate) use discover::find as find_plugins;
pub use signals::{Lifeline, stdin_ends};
use signals::{Signals, Stop};

/// Why the supervisor could not start, or ended by itself. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeFailure {
    /// The image that plugins are started from could not be made.
    #[error("cannot prepare the jail: {0}")]
    Stage(#[from] talon_jail::StageError),
    /// The plugins' side could not begin; another supervisor may run.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The sanitizer does not take the operator's patterns.
    #[error("guard.forbidden_patterns: {0}")]
    Patterns(#[from] SettingsError),
    /// The socket failed while serving.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// There is nothing to keep state with.
    #[error(transparent)]
    StateProgram(#[from] NoProgram),
    /// State cannot be kept.
    #[error(transparent)]
    State(#[from] NotOpened),
    /// The kernel does not deliver signals.
    #[error("cannot wait for signals: {0}")]
    Signals(#[source] io::Error),
}

/// Runs a supervisor until a signal ends it, or what its life hangs on. Must be called within a tokio runtime.
///
/// # Errors
/// [`ServeFailure`]; no process and no socket is left then.
pub async fn serve(loaded: Loaded, lifeline: Option<Lifeline>) -> Result<(), ServeFailure> {
    let started = SystemTime::now();
    descriptors::raise_limit();
    let config = Arc::new(loaded.config);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    // Signals first: one that comes during the start ends it in order.
    let mut signals = Signals::new(lifeline).map_err(ServeFailure::Signals)?;
    let events = Events::new();
    let sanitizer =
        Sanitizer::new(&Settings { forbidden_patterns: config.guard.forbidden_patterns.clone() })?;
    let stage = Arc::new(talon_jail::Stage::from_current_exe()?);
    let machine = look_at_machine(&stage).await;
    let keeper = kept::keeper(&config, &events);
    let registry = Registry::new(kept::settings(&config, keeper.as_ref()), stage, events.clone())?;
    registry.keep_approvals()?;
    if let Some(keeper) = &keeper
        && let Err(failure) = kept::start(&config, &registry, keeper, &mut signals).await
    {
        registry.shutdown(Duration::ZERO).await;
        return failure.map_or(Ok(()), Err);
    }
    let socket = bind_host(&config.runtime_dir, config.host_gid())?;

    let door = Arc::new(Door::new(registry.clone(), Arc::clone(&config), sanitizer, events.clone()));
    let refused = discover::register_all(&config, &registry, &events).await;
    let about = About {
        started,
        runtime_dir: config.runtime_dir.clone(),
        data_dir: config.state.data_dir.clone(),
        config_file: loaded.file,
        not_enforced: not_enforced(&machine.report()),
        refused,
        keeper: keeper.clone(),
    };
    tell(&machine, config.sandbox.mode.into(), &about.not_enforced);
    let closing = CancellationToken::new();
    let service =
        HostService::new(registry.clone(), Arc::clone(&door), events.clone(), about, closing.clone());
    let recognise = peers::recognise(config.peers());
    let mut server = Server::start(
        socket.listener,
        recognise,
        service,
        Operators::new(keeper),
        largest_arguments(&config, &registry),
    );

    let socket_path = config.runtime_dir.join(SOCKET_NAME);
    let result = tokio::select! {
        stop = live(&registry, &events, &socket_path, &mut signals) => {
            tracing::info!(signal = stop.name(), "stopping: no new calls, calls in flight may finish");
            Ok(())
        }
        ended = server.ended() => {
            tracing::error!("host.sock ended by itself; stopping");
            ended.map_err(ServeFailure::from)
        }
    };

    let grace = config.plugins.tools.lifecycle.grace_period.get();
    tokio::select! {
        () = wind_down(&registry, &door, &events, grace) => {}
        stop = signals.stop() => {
            tracing::warn!(signal = stop.name(), "stopping at once: calls in flight are cut off");
            registry.shutdown(Duration::ZERO).await;
        }
    }
    closing.cancel();
    // The file goes before the last connections do, so that no client finds it and gets no answer.
    drop(socket.file);
    if result.is_ok() {
        server.stop().await;
    }
    tracing::info!("stopped");
    result
}

/// From the start of the plugins to the signal that ends it all.
async fn live(registry: &Registry, events: &Events, socket: &Path, signals: &mut Signals) -> Stop {
    let plugins = registry.list();
    let settled = join_all(plugins.iter().map(talon_plugin::Plugin::settled));
    tokio::select! {
        stop = signals.stop() => return stop,
        _ = settled => {}
    }
    let ready = plugins.iter().filter(|plugin| plugin.snapshot().state == State::Ready).count();
    // Here a service manager will be told that the start is over.
    tracing::info!(plugins = plugins.len(), ready, socket = %socket.display(), "ready");
    events.emit(
        NewEvent::new(EventKind::Supervisor, "ready").field("plugins", plugins.len()).field("ready", ready),
    );
    signals.stop().await
}

async fn wind_down(registry: &Registry, door: &Door, events: &Events, grace: Duration) {
    events.emit(NewEvent::new(EventKind::Supervisor, "draining"));
    let began = tokio::time::Instant::now();
    let left = door.drain(grace).await;
    if left > 0 {
        tracing::warn!(calls = left, "calls are still in flight after the grace period; they are cut off");
    }
    registry.shutdown(grace.saturating_sub(began.elapsed())).await;
}

/// Some milliseconds, which are the kernel's and not ours.
async fn look_at_machine(stage: &Arc<talon_jail::Stage>) -> talon_jail::Machine {
    let stage = Arc::clone(stage);
    match tokio::task::spawn_blocking(move || talon_jail::probe(&stage)).await {
        Ok(machine) => machine,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// What an operator must know of the machine before the first plugin starts.
fn tell(machine: &talon_jail::Machine, mode: talon_jail::Mode, not_enforced: &[String]) {
    let tier = machine.tier;
    tracing::info!(tier = tier.name(), kernel = machine.kernel, "this machine: {}", tier.describe());
    for protection in not_enforced {
        tracing::warn!("not enforced on this machine: {protection}");
    }
    match mode {
        talon_jail::Mode::Enforce if !machine.accepted_by_enforce() => tracing::error!(
            tier = tier.name(),
            "sandbox.mode is enforce, and this machine cannot give what that asks: plugins will be refused \
             (`talon doctor` says how to get it; sandbox.mode: best-effort runs them without)"
        ),
        talon_jail::Mode::Off => tracing::warn!(
            "sandbox.mode is off: plugins run without a jail, with the rights of this supervisor's user \
             (set it to enforce)"
        ),
        talon_jail::Mode::Enforce | talon_jail::Mode::BestEffort => {}
    }
}

/// How the text of a protection begins for which something weaker stands in.
pub(crate) const STAND_IN: &str = "only a stand-in: ";

/// Protections that do not hold, each with its reason.
#[must_use]
pub fn not_enforced(report: &talon_jail::Report) -> Vec<String> {
    let line = |protection: &talon_jail::Protection| match &protection.status {
        talon_jail::Status::Enforced => None,
        talon_jail::Status::StandIn(how) => Some(format!("{}: {STAND_IN}{how}", protection.name)),
        talon_jail::Status::Missing(why) => Some(format!("{}: {why}", protection.name)),
    };
    report.iter().filter_map(line).collect()
}

/// The largest arguments that any plugin may be called with: what the socket must let through.
fn largest_arguments(config: &Config, registry: &Registry) -> usize {
    let of_plugin =
        |plugin: &Plugin| config.call_policy(plugin.name().as_str(), &plugin.spec()).max_argument_bytes;
    let of_others =
        config.plugins.tools.defaults.max_argument_bytes.unwrap_or(config.guard.max_argument_bytes);
    registry.list().iter().map(of_plugin).chain([of_others.as_usize()]).max().unwrap_or_default()
}
