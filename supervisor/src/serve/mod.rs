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
//! | `discover` | finds plugins |
//! | `peers`, `process_tree` | identifies clients of `host.sock` |
//! | `reload` | changes of configuration and plugins at runtime |
//! | `ready` | the end of the start |
//! | `lifecycle`, `running` | from then to the end; what runs, and how it stops |
//! | `signals` | signals that stop it |
//! | `handover` | handover to the next supervisor |
//! | `notify`, `status_line`, `watchdog` | messages to a service manager |
//! | `inherited` | sockets from a service manager |
//! | `hardening` | restrictions of the supervisor process itself |
//! | `admin_listeners` | `admin.sock`, while this supervisor serves |
//! | `files` | watched files |

mod agent;
mod descriptors;
mod discover;
mod failure;
mod files;
mod handover;
pub(crate) mod inherited;
mod itself;
pub(crate) mod kept;
mod kin;
mod life;
mod machine;
pub(crate) mod notify;
mod peers;
mod ready;
pub(crate) mod reload;
mod running;
mod signals;
mod status_line;
mod watchdog;
mod watched;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use talon_plugin::{Events, Registry};
use talon_sanitize::{Sanitizer, Settings};

use crate::admin::usage::Usages;
use crate::admin::{self, Sources};
use crate::audit::Audit;
use crate::config::{Config, Loaded};
use crate::door::Door;
use crate::host::{About, Closing, HostService, SOCKET_NAME, asked, bind_host};
use crate::state::Keeper;
use agent::AgentSide;
pub(crate) use discover::find as find_plugins;
pub use failure::ServeFailure;
pub use handover::TakeoverError;
use handover::{Arrival, arrive};
pub use inherited::{AdminListener, InheritedError, Sockets};
pub use itself::confine;
use life::End;
pub(crate) use machine::STAND_IN;
pub use machine::not_enforced;
use notify::Manager;
use reload::Hangups;
pub use reload::Reloader;
use running::{Running, largest_arguments};
use signals::Signals;
pub use signals::{Lifeline, stdin_ends};
use watched::Watched;

/// Options of a start, beside the configuration.
#[derive(Debug, Default)]
pub struct Beginning {
    /// Ends the supervisor when it resolves, in addition to signals.
    pub lifeline: Option<Lifeline>,
    /// Sockets from a service manager.
    pub sockets: Sockets,
    /// Whether to take over from the supervisor that runs in the same runtime directory.
    pub takeover: bool,
}

/// Runs a supervisor until a signal or its lifeline ends it, or another supervisor takes over. Must be called
/// within a tokio runtime.
///
/// # Errors
/// [`ServeFailure`]; nothing that it started is left then.
pub async fn serve(loaded: Loaded, beginning: Beginning) -> Result<(), ServeFailure> {
    let started = SystemTime::now();
    let Beginning { lifeline, mut sockets, takeover } = beginning;
    descriptors::raise_limit();
    let config = Arc::new(loaded.config);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    for left in sockets.left.drain(..) {
        tracing::warn!("a descriptor that was handed in is not used: {left}");
    }
    // Signals first: a signal during the start ends it in an orderly way.
    let mut signals = Signals::new(lifeline).map_err(ServeFailure::Signals)?;
    let hangups = Hangups::new().map_err(ServeFailure::Signals)?;
    let manager = Manager::of_process();
    let more_time = manager.extending(ready::START_LIMIT);
    // Before anything is recorded.
    let series = admin::metrics::install();
    let events = Events::new();
    let sanitizer =
        Sanitizer::new(&Settings { forbidden_patterns: config.guard.forbidden_patterns.clone() })?;
    let stage = Arc::new(talon_jail::Stage::from_current_exe()?.keeping_a_spare());
    let machine = machine::look_at(&stage).await;
    // The last check before anything of another supervisor is touched.
    let mut arrival = tokio::select! {
        arrival = arrive(&mut sockets, &config, takeover, &manager) => arrival?,
        _ = signals.stop() => return Ok(()),
    };
    let keeper = kept::keeper(&config, &events);
    let agent = agent::keeper(&config, &events);
    let (registry, kept) =
        match begin(&config, stage, &events, keeper.as_ref(), &mut arrival, &mut signals).await {
            Ok(begun) => begun,
            Err(None) => return Ok(()),
            Err(Some(failure)) => {
                arrival.failed(&failure.to_string()).await;
                return Err(failure);
            }
        };
    let audit = Audit::start(&config, &events).map_err(ServeFailure::Audit)?;
    let socket = match arrival.socket.take() {
        Some(socket) => socket,
        None => bind_host(&config.runtime_dir, config.host_gid())?,
    };

    let door = Arc::new(Door::new(registry.clone(), Arc::clone(&config), sanitizer, events.clone()));
    let refused = discover::register_all(&config, &registry, &events).await;
    arrival.quarantine(&door);
    let peers = Arc::new(ArcSwap::from_pointee(config.peers()));
    let reloader = Reloader::new(reload::Parts {
        options: loaded.options,
        config: Arc::clone(&config),
        config_file: loaded.file.clone(),
        registry: registry.clone(),
        door: Arc::clone(&door),
        events: events.clone(),
        peers: Arc::clone(&peers),
        keeper: keeper.clone(),
        agent: agent.clone(),
        refused,
        largest_arguments: largest_arguments(&config, &registry),
        audit: audit.clone(),
        manager: manager.clone(),
    });
    let about = About {
        started,
        runtime_dir: config.runtime_dir.clone(),
        data_dir: config.state.data_dir.clone(),
        config_file: loaded.file,
        not_enforced: not_enforced(&machine.report()),
        reloader: reloader.clone(),
        keeper: keeper.clone(),
        agent: agent.clone(),
        usages: Usages::new(registry.clone()),
        tier: machine.tier.name(),
        audit: audit.clone(),
    };
    machine::tell(&machine, config.sandbox.mode.into(), &about.not_enforced);
    let (leaving, mut asks) = asked();
    let service = HostService::new(
        registry.clone(),
        Arc::clone(&door),
        events.clone(),
        about,
        Closing::default(),
        leaving,
    );
    let pulse = tokio::sync::watch::Sender::new(None);
    let _fed = watchdog::feed(&manager, &registry, pulse.subscribe());
    let status = status_line::keep(&manager, &registry, &events, reloader.clone());
    // Tasks that run as long as the supervisor: one line each.
    let hangups = hangups.obey(reloader.clone());
    let files = files::follow(reloader);

    let closing = Closing::default();
    let watched = Watched::new(sockets.admin, Sources::new(&registry, &door, service.about(), series));
    let mut running = Running {
        events,
        registry,
        door,
        keeper,
        kept,
        service,
        peers,
        socket,
        agent: AgentSide::new(agent, arrival.agent_socket.take()),
        server: None,
        watched,
        audit,
        closing,
        pulse,
    };
    let socket_path = config.runtime_dir.join(SOCKET_NAME);
    // From here on `settled` asks for more time.
    drop(more_time);
    let end = match running.open().await {
        Ok(()) => life::live(&mut running, &mut signals, &mut asks, &manager, arrival, &socket_path).await,
        Err(error) if arrival.is_succession() => {
            arrival.failed(&error.to_string()).await;
            End::NotOurs(error)
        }
        Err(error) => End::Failed(error),
    };
    // No more changes while it stops.
    drop((hangups, files, status));
    running.end(end, &mut signals, &manager).await
}

/// Starts the plugins' side and the state service. `Err(None)`: a signal interrupted the start.
async fn begin(
    config: &Arc<Config>,
    stage: Arc<talon_jail::Stage>,
    events: &Events,
    keeper: Option<&Keeper>,
    arrival: &mut Arrival,
    signals: &mut Signals,
) -> Result<(Registry, Option<talon_plugin::Service>), Option<ServeFailure>> {
    let settings = kept::settings(config, keeper);
    let registry = match arrival.processes() {
        Some(inherited) => Registry::taking_over(settings, stage, events.clone(), inherited),
        None => Registry::new(settings, stage, events.clone()),
    };
    let registry = registry.map_err(|error| Some(error.into()))?;
    let kept = async {
        registry.keep_approvals().map_err(|error| Some(error.into()))?;
        match keeper {
            Some(keeper) => kept::start(config, &registry, keeper, signals).await.map(Some),
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
