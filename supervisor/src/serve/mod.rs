//! Start, operation and end of the supervisor.
//!
//! ```text
//! log ─► inherited state ─► runtime directory (lock) ─► state ─► host.sock ─► plugins ─► ready
//!                                                                                              │ SIGTERM, SIGINT
//! exit 0 ◄─ socket removed ◄─ plugins, then state stopped ◄─ calls in flight finished ◄────────┤
//! exit 0 ◄─ the next supervisor has everything, and the plugins keep running ◄─ handover ◄─────┘
//! ```
//!
//! A failure before *ready* undoes all earlier steps, by dropping them. State that another supervisor offered
//! stays with that one, or in the store it came from.
//!
//! | module | contents |
//! |---|---|
//! | `machine` | what this machine can enforce |
//! | `state_service` | the service that stores the plugins' state |
//! | `agent` | the agent, and `agent.sock` |
//! | `peers`, `process_tree` | identifies clients of `host.sock` |
//! | `ready` | the end of the start |
//! | `lifecycle`, `running` | from then to the end; what runs, and how it stops |
//! | `shutdown_cause` | why it ends |
//! | `signals` | signals that stop it |
//! | `handover` | handover to the next supervisor |
//! | `status_line`, `watchdog` | messages to a service manager |
//! | `inherited` | sockets from a service manager |
//! | `hardening` | restrictions of the supervisor process itself |
//! | `admin_listeners` | `admin.sock`, while this supervisor serves |
//! | `files` | watched files |

mod admin_listeners;
mod agent;
mod descriptors;
mod failure;
mod files;
mod handover;
mod hardening;
pub(crate) mod inherited;
mod lifecycle;
mod machine;
mod peers;
mod process_tree;
mod ready;
mod running;
mod shutdown_cause;
mod signals;
pub mod state_service;
mod status_line;
mod watchdog;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use talon_plugin::{Events, Registry};
use talon_sanitize::{Sanitizer, Settings};

use crate::admin::{self, Sources};
use crate::audit::Audit;
use crate::config::{Config, Loaded};
use crate::discover;
pub use crate::discover::find as find_plugins;
use crate::dispatch::Dispatcher;
use crate::host::{HostService, StreamCloser, SupervisorInfo, exit_channel};
use crate::notify::Manager;
use crate::reload::{ReloadSignals, Reloader, ReloaderParts};
use crate::socket::{HOST_SOCKET_NAME, bind_host};
use crate::state::StateSupervisor;
use crate::usage::UsageReader;
use admin_listeners::AdminListeners;
use agent::AgentRuntime;
pub use failure::ServeFailure;
pub use handover::TakeoverError;
use handover::{AcquiredState, acquire};
pub use hardening::confine;
pub use inherited::{AdminListener, InheritedError, InheritedSockets};
pub use machine::{STAND_IN, not_enforced};
use running::RunningSupervisor;
use shutdown_cause::ShutdownCause;
use signals::Signals;
pub use signals::{Lifeline, stdin_lifeline};

/// Options of a start, beside the configuration.
#[derive(Debug, Default)]
pub struct StartOptions {
    /// Ends the supervisor when it resolves, in addition to signals.
    pub lifeline: Option<Lifeline>,
    /// Sockets from a service manager.
    pub sockets: InheritedSockets,
    /// Whether to take over from the supervisor that runs in the same runtime directory.
    pub takeover: bool,
}

/// Runs a supervisor until a signal or its lifeline ends it, or another supervisor takes over. Must be called
/// within a tokio runtime.
///
/// # Errors
/// [`ServeFailure`]; nothing that it started is left then.
pub async fn serve(loaded: Loaded, beginning: StartOptions) -> Result<(), ServeFailure> {
    let started = SystemTime::now();
    let StartOptions { lifeline, mut sockets, takeover } = beginning;
    descriptors::raise_limit();
    let config = Arc::new(loaded.config);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    for left in sockets.unused.drain(..) {
        tracing::warn!("a descriptor that was handed in is not used: {left}");
    }
    // Signals first: a signal during the start ends it in an orderly way.
    let mut signals = Signals::new(lifeline).map_err(ServeFailure::Signals)?;
    let hangups = ReloadSignals::new().map_err(ServeFailure::Signals)?;
    let manager = Manager::of_process();
    let more_time = manager.keep_extending(ready::START_LIMIT);
    // Before anything is recorded.
    let series = admin::metrics::install();
    let events = Events::new();
    let sanitizer =
        Sanitizer::new(&Settings { forbidden_patterns: config.guard.forbidden_patterns.clone() })?;
    let stage = Arc::new(talon_jail::Stage::from_current_exe()?.with_standby());
    let machine = machine::probe_machine(&stage).await;
    // The last check before anything of another supervisor is touched.
    let mut arrival = tokio::select! {
        arrival = acquire(&mut sockets, &config, takeover, &manager) => arrival?,
        _ = signals.stop() => return Ok(()),
    };
    let keeper = state_service::supervisor(&config, &events);
    let agent = agent::supervisor(&config, &events);
    let (registry, kept) =
        match start_plugins(&config, stage, &events, keeper.as_ref(), &mut arrival, &mut signals).await {
            Ok(begun) => begun,
            Err(None) => return Ok(()),
            Err(Some(failure)) => {
                arrival.reject(&failure.to_string()).await;
                return Err(failure);
            }
        };
    let audit = Audit::start(&config, &events).map_err(ServeFailure::Audit)?;
    let socket = match arrival.socket.take() {
        Some(socket) => socket,
        None => bind_host(&config.runtime_dir, config.host_gid())?,
    };

    let door = Arc::new(Dispatcher::new(registry.clone(), Arc::clone(&config), sanitizer, events.clone()));
    let refused = discover::register_all(&config, &registry, &events).await;
    arrival.quarantine(&door);
    let peers = Arc::new(ArcSwap::from_pointee(config.peers()));
    let reloader = Reloader::new(ReloaderParts {
        options: loaded.options,
        config: Arc::clone(&config),
        config_file: loaded.file.clone(),
        registry: registry.clone(),
        dispatcher: Arc::clone(&door),
        events: events.clone(),
        peers: Arc::clone(&peers),
        state: keeper.clone(),
        agent: agent.clone(),
        refused,
        largest_arguments: door.largest_arguments(),
        audit: audit.clone(),
        manager: manager.clone(),
    });
    let about = SupervisorInfo {
        started,
        runtime_dir: config.runtime_dir.clone(),
        data_dir: config.state.data_dir.clone(),
        config_file: loaded.file,
        not_enforced: not_enforced(&machine.report()),
        reloader: reloader.clone(),
        state: keeper.clone(),
        agent: agent.clone(),
        usages: UsageReader::new(registry.clone()),
        tier: machine.tier.name(),
        audit: audit.clone(),
    };
    machine::log_protections(&machine, config.sandbox.mode.into(), &about.not_enforced);
    let (leaving, mut asks) = exit_channel();
    let service = HostService::new(
        registry.clone(),
        Arc::clone(&door),
        events.clone(),
        about,
        StreamCloser::default(),
        leaving,
    );
    let pulse = tokio::sync::watch::Sender::new(None);
    let _fed = watchdog::feed(&manager, &registry, pulse.subscribe());
    let status = status_line::keep_updated(&manager, &registry, &events, reloader.clone());
    // Tasks that run as long as the supervisor: one line each.
    let hangups = hangups.run(reloader.clone());
    let files = files::follow(reloader);

    let closing = StreamCloser::default();
    let watched = AdminListeners::new(sockets.admin, Sources::new(&registry, &door, service.info(), series));
    let mut running = RunningSupervisor {
        events,
        registry,
        dispatcher: door,
        state: keeper,
        state_service: kept,
        service,
        peers,
        socket,
        agent: AgentRuntime::new(agent, arrival.agent_socket.take()),
        server: None,
        admin: watched,
        audit,
        closing,
        liveness: pulse,
    };
    let socket_path = config.runtime_dir.join(HOST_SOCKET_NAME);
    // From here on `settled` asks for more time.
    drop(more_time);
    let end = match running.open().await {
        Ok(()) => {
            lifecycle::wait_for_end(&mut running, &mut signals, &mut asks, &manager, arrival, &socket_path)
                .await
        }
        Err(error) if arrival.is_succession() => {
            arrival.reject(&error.to_string()).await;
            ShutdownCause::TakeoverFailed(error)
        }
        Err(error) => ShutdownCause::Failed(error),
    };
    // No more changes while it stops.
    drop((hangups, files, status));
    running.end(end, &mut signals, &manager).await
}

/// Starts the plugins' side and the state service. `Err(None)`: a signal interrupted the start.
async fn start_plugins(
    config: &Arc<Config>,
    stage: Arc<talon_jail::Stage>,
    events: &Events,
    keeper: Option<&StateSupervisor>,
    arrival: &mut AcquiredState,
    signals: &mut Signals,
) -> Result<(Registry, Option<talon_plugin::Service>), Option<ServeFailure>> {
    let settings = state_service::settings(config, keeper);
    let registry = match arrival.processes() {
        Some(inherited) => Registry::with_inherited(settings, stage, events.clone(), inherited),
        None => Registry::new(settings, stage, events.clone()),
    };
    let registry = registry.map_err(|error| Some(error.into()))?;
    let kept = async {
        registry.persist_approvals().map_err(|error| Some(error.into()))?;
        match keeper {
            Some(keeper) => state_service::start(config, &registry, keeper, signals).await.map(Some),
            None => Ok(None),
        }
    };
    match kept.await {
        Ok(kept) => Ok((registry, kept)),
        Err(failure) => {
            if arrival.is_succession() {
                registry.release().await;
            } else {
                registry.shutdown(Duration::ZERO).await;
            }
            Err(failure)
        }
    }
}
