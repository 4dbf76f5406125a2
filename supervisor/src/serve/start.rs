//! The start of a supervisor, step by step, and its run.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use talon_jail::Mode;
use talon_plugin::{Events, Registry};
use talon_plugin_config::discover::RejectedPlugin;
use talon_sanitize::{Sanitizer, Settings};
use tokio::sync::mpsc;

use super::admin_listeners::AdminListeners;
use super::agent::{self, AgentRuntime};
use super::failure::ServeFailure;
use super::gateway::{self, GatewayRuntime};
use super::handover::{AcquiredState, acquire};
use super::idle::ClientConnections;
use super::inherited::InheritedSockets;
use super::machine::{self, not_enforced};
use super::running::RunningSupervisor;
use super::shutdown_cause::ShutdownCause;
use super::signals::{Lifeline, Signals};
use super::{descriptors, files, lifecycle, ready, state_service, status_line, watchdog};
use crate::admin::{self, Sources};
use crate::agent::AgentSupervisor;
use crate::audit::Audit;
use crate::config::{Config, Loaded, PeerPolicy, Problem};
use crate::credentials::{Credentials, StateStore};
use crate::discover;
use crate::dispatch::Dispatcher;
use crate::events::{EventRecorder, PluginEventSink};
use crate::gateway::GatewaySupervisor;
use crate::host::{ExitRequest, HostService, StreamCloser, SupervisorInfo, exit_channel};
use crate::notify::Manager;
use crate::receipts::Receipts;
use crate::reload::{ReloadSignals, Reloader, ReloaderParts};
use crate::script_audit;
use crate::series::Series;
use crate::socket::{HOST_SOCKET_NAME, bind_host, grant_peers};
use crate::state::StateSupervisor;
use crate::usage::UsageReader;

/// Options of a start, beside the configuration.
#[derive(Debug, Default)]
pub struct StartOptions {
    /// Ends the supervisor when it resolves, in addition to signals.
    pub lifeline: Option<Lifeline>,
    /// Sockets from a service manager.
    pub sockets: InheritedSockets,
    /// Whether to take over from the supervisor that runs in the same runtime directory.
    pub takeover: bool,
    /// Whether it was started for one user, by a client that found none: it ends after `user.idle_exit` without work, and where this
    /// machine gives no jail, our own services run without, so that a model answers. Plugins are still refused.
    pub for_user: bool,
}

/// Runs a supervisor until a signal or its lifeline ends it, or another supervisor takes over. Must be called
/// within a tokio runtime.
///
/// # Errors
/// [`ServeFailure`]; nothing that it started is left then.
pub async fn serve(loaded: Loaded, beginning: StartOptions) -> Result<(), ServeFailure> {
    let started = SystemTime::now();
    let StartOptions { lifeline, mut sockets, takeover, for_user } = beginning;
    descriptors::raise_limit();
    let config = Arc::new(loaded.config.clone());
    log_warnings(&loaded.warnings, &mut sockets);
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
    let service_mode = machine::service_mode(config.sandbox.mode.into(), for_user, &machine);
    // The last check before anything of another supervisor is touched.
    let mut arrival = tokio::select! {
        arrival = acquire(&mut sockets, &config, takeover, &manager) => arrival?,
        _ = signals.stop() => return Ok(()),
    };
    // From here on events are recorded, once the directory for data is there.
    let unrecorded = events.subscribe_without_calls();
    let state = state_service::supervisor(&config, &events);
    let agent = agent::supervisor(&config, &events);
    let gateway = gateway::supervisor(&config, agent.as_ref(), &events);
    let (registry, state_service) = match start_plugins(
        &config,
        stage,
        &events,
        (state.as_ref(), agent.as_ref()),
        service_mode,
        &mut arrival,
        &mut signals,
    )
    .await
    {
        Ok(begun) => begun,
        Err(None) => return Ok(()),
        Err(Some(failure)) => {
            arrival.reject(&failure.to_string()).await;
            return Err(failure);
        }
    };
    let recorder = EventRecorder::start(&config, &events, unrecorded);
    let audit = Audit::start(&config, &events).map_err(ServeFailure::Audit)?;
    if let Some(agent) = &agent {
        agent.set_audit(audit.clone());
    }
    // Before there is a plugin.
    let scripts = script_audit::record(&audit, events.subscribe_without_calls());
    let socket = match arrival.socket.take() {
        Some(socket) => socket,
        None => bind_host(&config.runtime_dir, config.host_gid())?,
    };
    grant_peers(&config, HOST_SOCKET_NAME)?;
    let dispatcher =
        Arc::new(Dispatcher::new(registry.clone(), Arc::clone(&config), sanitizer, events.clone()));
    registry.set_event_sink(Arc::new(PluginEventSink::new(
        &dispatcher,
        &recorder,
        registry.events().clone(),
    )));
    let (refused, names) = discover::register_all(&config, &registry, &events).await;
    log_warnings(&discover::unknown_overrides(&loaded, &names), &mut sockets);
    arrival.quarantine(&dispatcher);

    let limits_ports = machine.limits_ports;
    let idle_exit = for_user.then(|| config.user.idle_exit.get());
    let parts = Parts {
        started,
        loaded: Arc::new(loaded),
        machine,
        config,
        registry,
        dispatcher,
        events,
        state,
        agent,
        gateway,
        audit,
        recorder,
    };
    let HostApi { service, reloader, peers, exit_requests } = parts.host_api(refused, &manager);
    let Parts { config, registry, dispatcher, events, state, agent, gateway, audit, recorder, .. } = parts;
    let liveness = tokio::sync::watch::Sender::new(None);
    let _fed = watchdog::feed(&manager, &registry, liveness.subscribe());
    // Tasks that run as long as the supervisor: one line each.
    let status = status_line::keep_updated(&manager, &registry, &events, reloader.clone());
    let hangups = hangups.run(reloader.clone());
    let files = files::follow(reloader);
    let samples = service.info().series.as_ref().map(|series| series.record(&registry, &dispatcher));

    let sources = Sources::new(&registry, &dispatcher, service.info(), series);
    let mut running = RunningSupervisor {
        events,
        registry,
        dispatcher,
        state,
        state_service,
        service,
        peers,
        socket,
        agent: AgentRuntime::new(agent, arrival.agent_socket.take(), service_mode),
        gateway: GatewayRuntime::new(gateway, arrival.gateway_listener.take(), service_mode, limits_ports),
        server: None,
        admin: AdminListeners::new(sockets.admin, sources),
        audit,
        recorder,
        closing: StreamCloser::default(),
        liveness,
        clients: ClientConnections::default(),
        service_mode,
        idle_exit,
    };
    // From here on `settled` asks for more time.
    drop(more_time);
    let socket_path = config.runtime_dir.join(HOST_SOCKET_NAME);
    let end = run(&mut running, &mut signals, exit_requests, &manager, arrival, &socket_path).await;
    // No more changes while it stops.
    drop((hangups, files, status, scripts, samples));
    running.end(end, &mut signals, &manager).await
}

fn log_warnings(warnings: &[Problem], sockets: &mut InheritedSockets) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    for left in sockets.unused.drain(..) {
        tracing::warn!("a descriptor that was handed in is not used: {left}");
    }
}

/// Accepts clients, and waits for the reason to end.
async fn run(
    running: &mut RunningSupervisor,
    signals: &mut Signals,
    mut exit_requests: mpsc::Receiver<ExitRequest>,
    manager: &Manager,
    arrival: AcquiredState,
    socket: &Path,
) -> ShutdownCause {
    match running.open().await {
        Ok(()) => {
            lifecycle::wait_for_end(running, signals, &mut exit_requests, manager, arrival, socket).await
        }
        Err(error) if arrival.is_succession() => {
            arrival.reject(&error.to_string()).await;
            ShutdownCause::TakeoverFailed(error)
        }
        Err(error) => ShutdownCause::Failed(error),
    }
}

/// What was started before the host API.
struct Parts {
    started: SystemTime,
    loaded: Arc<Loaded>,
    machine: talon_jail::Machine,
    config: Arc<Config>,
    registry: Registry,
    dispatcher: Arc<Dispatcher>,
    events: Events,
    state: Option<StateSupervisor>,
    agent: Option<AgentSupervisor>,
    gateway: Option<GatewaySupervisor>,
    audit: Audit,
    recorder: EventRecorder,
}

/// The service behind `host.sock`, and what it shares with the rest of the supervisor.
struct HostApi {
    service: HostService,
    reloader: Reloader,
    /// The rights of peers: replaced with the configuration.
    peers: Arc<ArcSwap<PeerPolicy>>,
    exit_requests: mpsc::Receiver<ExitRequest>,
}

impl Parts {
    fn host_api(&self, refused: Vec<RejectedPlugin>, manager: &Manager) -> HostApi {
        let Self { config, registry, dispatcher, events, .. } = self;
        let peers = Arc::new(ArcSwap::from_pointee(config.peers()));
        let reloader = Reloader::new(ReloaderParts {
            options: self.loaded.options.clone(),
            config: Arc::clone(config),
            loaded: Arc::clone(&self.loaded),
            registry: registry.clone(),
            dispatcher: Arc::clone(dispatcher),
            events: events.clone(),
            peers: Arc::clone(&peers),
            state: self.state.clone(),
            agent: self.agent.clone(),
            gateway: self.gateway.clone(),
            refused,
            largest_arguments: dispatcher.largest_arguments(),
            audit: self.audit.clone(),
            manager: manager.clone(),
        });
        let info = SupervisorInfo {
            started: self.started,
            runtime_dir: config.runtime_dir.clone(),
            data_dir: config.state.data_dir.clone(),
            config_file: self.loaded.file.clone(),
            not_enforced: not_enforced(&self.machine.report()),
            reloader: reloader.clone(),
            state: self.state.clone(),
            agent: self.agent.clone(),
            usages: UsageReader::new(registry.clone()),
            tier: self.machine.tier.name(),
            audit: self.audit.clone(),
            receipts: Receipts::open(&config.state.data_dir),
            recorder: self.recorder.clone(),
            gateway: self.gateway.clone(),
            credentials: self.state.as_ref().map(|state| {
                let most = usize::try_from(config.gateway.limits.credentials).unwrap_or(usize::MAX);
                Credentials::new(StateStore::new(state), most)
            }),
            series: self.gateway.as_ref().map(|_| Series::default()),
        };
        machine::log_protections(&self.machine, config.sandbox.mode.into(), &info.not_enforced);
        let (exit_sender, exit_requests) = exit_channel();
        let service = HostService::new(
            registry.clone(),
            Arc::clone(dispatcher),
            events.clone(),
            info,
            StreamCloser::default(),
            exit_sender,
            &config.host.limits,
        );
        HostApi { service, reloader, peers, exit_requests }
    }
}

/// Starts the plugins' side and the state service. `Err(None)`: a signal interrupted the start.
async fn start_plugins(
    config: &Arc<Config>,
    stage: Arc<talon_jail::Stage>,
    events: &Events,
    (keeper, agent): (Option<&StateSupervisor>, Option<&AgentSupervisor>),
    service_mode: Mode,
    arrival: &mut AcquiredState,
    signals: &mut Signals,
) -> Result<(Registry, Option<talon_plugin::Service>), Option<ServeFailure>> {
    let settings = state_service::settings(config, keeper, agent);
    let registry = match arrival.processes() {
        Some(inherited) => Registry::with_inherited(settings, stage, events.clone(), inherited),
        None => Registry::new(settings, stage, events.clone()),
    };
    let registry = registry.map_err(|error| Some(error.into()))?;
    let kept = async {
        registry.persist_approvals().map_err(|error| Some(error.into()))?;
        match keeper {
            Some(keeper) => {
                state_service::start(config, &registry, keeper, service_mode, signals).await.map(Some)
            }
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
