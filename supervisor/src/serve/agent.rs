//! The agent, while this supervisor serves. Problems with it never stop the rest of the supervisor.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talon_plugin::service::{Home, Service, ServiceSpec};
use talon_plugin::{Events, PluginName, Registry, SetupError};
use tokio_util::task::AbortOnDropHandle;

use crate::agent::{self, Clients, Doorway, Keeper, NoProgram, SOCKET_NAME, Serve};
use crate::config::{Config, Engine, Secret};
use crate::host::{Alone, BindError, HostSocket, Living, Peer, Recognise, bind_named};
use crate::service::HealthChecks;
use crate::state::{self, AGENT_DIR};

/// The service's name: in the log, and in the list of assigned uids.
const NAME: &str = "talon-agent";

/// Why it does not run. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
enum NotRun {
    #[error(transparent)]
    Program(#[from] NoProgram),
    #[error(transparent)]
    Home(#[from] SetupError),
    #[error(transparent)]
    Socket(#[from] BindError),
    #[error("{SOCKET_NAME} cannot be served: {0}; see the open files limit (LimitNOFILE=)")]
    Accept(#[source] io::Error),
}

/// This supervisor's part of the agent.
pub(super) struct AgentSide {
    /// `None` if no agent is configured.
    keeper: Option<Keeper>,
    /// `agent.sock`, once opened: it stays open across restarts of the agent, and during a handover.
    socket: Option<HostSocket>,
    open: Option<Open>,
}

/// What exists between `open` and `close`.
struct Open {
    _clients: Clients,
    started: Option<Started>,
}

struct Started {
    service: Service,
    _told: AbortOnDropHandle<()>,
}

/// The agent's supervisor; `None` if no agent is configured, or if state is off.
pub(super) fn keeper(config: &Config, events: &Events) -> Option<Keeper> {
    if !config.agent.enabled {
        return None;
    }
    let Some(open) = state::agents(&config.state) else {
        tracing::error!(
            "agent.enabled asks for an agent, and state.engine: off leaves it nowhere to keep its sessions: set another engine"
        );
        return None;
    };
    Some(Keeper::new(open, events.clone()))
}

impl AgentSide {
    /// Not open yet. `socket` comes from the previous supervisor.
    pub(super) fn new(keeper: Option<Keeper>, socket: Option<HostSocket>) -> Self {
        Self { keeper, socket, open: None }
    }

    /// Starts it, and accepts its clients. `serve` serves its connections to the plugins.
    pub(super) async fn open(
        &mut self,
        config: &Arc<Config>,
        registry: &Registry,
        recognise: Recognise,
        serve: impl Fn(UnixStream, Peer) -> io::Result<Alone> + Send + Sync + 'static,
    ) {
        let Some(keeper) = self.keeper.clone() else { return };
        keeper.reopen();
        match self.let_in(config, recognise, &keeper) {
            Ok(clients) => self.open = Some(Open { _clients: clients, started: None }),
            Err(error) => return fail(&keeper, &error),
        }
        let workspace =
            agent::workspace(config.agent.workspace.as_deref()).await.unwrap_or_else(|complaint| {
                tracing::warn!("{complaint}");
                None
            });
        match start(config, registry, &keeper, workspace, Arc::new(serve)) {
            Ok(started) => self.open.as_mut().expect("it was just put there").started = Some(started),
            // Clients are accepted all the same, so that they learn the reason, and not just that there is no
            // agent.
            Err(error) => fail(&keeper, &error),
        }
    }

    fn let_in(&mut self, config: &Config, recognise: Recognise, keeper: &Keeper) -> Result<Clients, NotRun> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            // An existing socket belongs to a supervisor that is gone, or to one that hands over to us but
            // had no agent socket to pass on: we hold the directory's lock.
            None => bind_named(&config.runtime_dir, SOCKET_NAME, config.host_gid(), Living::Goes)?,
        };
        let clients = Clients::accept(&socket.listener, recognise, keeper.clone());
        self.socket = Some(socket);
        clients.map_err(NotRun::Accept)
    }

    /// Stops it: no more clients, and what has begun may finish within its grace period. `agent.sock` stays,
    /// and new clients wait in its queue. May be called again, and is cancel safe.
    pub(super) async fn close(&mut self, within: Duration) {
        let Some(keeper) = &self.keeper else { return };
        if let Some(Open { started: Some(Started { service, .. }), .. }) = self.open.take() {
            service.stop().await;
        }
        keeper.close_door(within).await;
    }

    /// `agent.sock`, if it is open.
    pub(super) fn socket(&self) -> Option<&HostSocket> {
        self.socket.as_ref()
    }

    /// Takes ownership of the file, also if another supervisor created it.
    pub(super) fn claim(&mut self) {
        if let Some(file) = self.socket.as_mut().and_then(|socket| socket.file.as_mut()) {
            file.claim();
        }
    }

    /// Leaves the file to the supervisor that has the socket now.
    pub(super) fn keep(self) {
        if let Some(file) = self.socket.and_then(|socket| socket.file) {
            file.keep();
        }
    }
}

/// Starts it, without waiting.
fn start(
    config: &Arc<Config>,
    registry: &Registry,
    keeper: &Keeper,
    workspace: Option<PathBuf>,
    serve: Serve,
) -> Result<Started, NotRun> {
    let spec = spec(config, workspace)?;
    let own = || rustix::process::getegid().as_raw();
    let gid = spec.home.identity.map_or_else(own, |identity| identity.gid);
    keeper.open_door(Doorway { serve, gid });
    let told = tokio::spawn({
        let (config, keeper) = (Arc::clone(config), keeper.clone());
        async move {
            for problem in agent::hand_over(&config, &keeper).await {
                tracing::warn!("{problem}");
            }
        }
    });
    let service = registry.service(spec, Arc::new(keeper.clone()));
    let life = &config.plugins.tools.lifecycle;
    let checks = HealthChecks {
        interval: life.health_check_interval.get(),
        timeout: life.health_check_timeout.get(),
        threshold: life.health_failure_threshold,
    };
    tokio::spawn(agent::watch(keeper.clone(), service.clone(), checks));
    Ok(Started { service, _told: AbortOnDropHandle::new(told) })
}

fn fail(keeper: &Keeper, error: &NotRun) {
    keeper.failed(&format!("{error}; then start talon again (its plugins run on meanwhile)"));
}

fn spec(config: &Config, workspace: Option<PathBuf>) -> Result<ServiceSpec, NotRun> {
    let program = agent::find_program(config.agent.program.as_deref())?;
    let name = PluginName::own(NAME);
    let uid_range = config.talon_plugin_settings().uid_range;
    let home = Home::prepare(&config.state.data_dir, &name, AGENT_DIR, uid_range)?;
    let url = config.state.agent_url.as_ref().or(config.state.url.as_ref());
    let server = url.filter(|_| config.state.engine == Engine::Postgres).map(Secret::expose);
    Ok(agent::service(name, program, home, config.sandbox.mode.into(), workspace, server))
}
