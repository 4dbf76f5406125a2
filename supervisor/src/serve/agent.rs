//! The agent, while this supervisor serves. Problems with it never stop the rest of the supervisor.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talon_jail::Mode;
use talon_listen::ConnectionLimiter;
use talon_plugin::service::{Home, Service, ServiceSpec};
use talon_plugin::{Events, Registry, SetupError};
use talon_plugin_config::PluginName;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::{
    self, AgentConnection, AgentEndpoint, AgentSupervisor, ClientListener, ProgramNotFoundError, SOCKET_NAME,
    ServeConnection,
};
use crate::config::{Config, Engine, Secret};
use crate::peer::Peer;
use crate::service::HealthChecks;
use crate::socket::{BindError, HostSocket, LiveSocket, PeerClassifier, bind_named, grant_peers};
use crate::state::{self, AGENT_DIR};

/// The service's name: in the log, and in the list of assigned uids.
const NAME: &str = "talon-agent";

/// Why it does not run. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
enum AgentStartError {
    #[error(transparent)]
    Program(#[from] ProgramNotFoundError),
    #[error(transparent)]
    Home(#[from] SetupError),
    #[error(transparent)]
    Socket(#[from] BindError),
    #[error("{SOCKET_NAME} cannot be served: {0}; see the open files limit (LimitNOFILE=)")]
    Accept(#[source] io::Error),
}

/// This supervisor's part of the agent.
pub(super) struct AgentRuntime {
    /// `None` if no agent is configured.
    supervisor: Option<AgentSupervisor>,
    /// `agent.sock`, once opened: it stays open across restarts of the agent, and during a handover.
    socket: Option<HostSocket>,
    /// The mode of its jail.
    mode: Mode,
    open: Option<OpenAgent>,
}

/// What exists between `open` and `close`.
struct OpenAgent {
    clients: ClientListener,
    started: Option<StartedAgent>,
}

struct StartedAgent {
    service: Service,
    _configuring: AbortOnDropHandle<()>,
}

/// The agent's supervisor; `None` if no agent is configured, or if state is off.
pub(super) fn supervisor(config: &Arc<Config>, events: &Events) -> Option<AgentSupervisor> {
    if !config.runs_agent() {
        return None;
    }
    let Some(open) = state::agents(&config.state) else {
        tracing::error!(
            "an agent is configured, and state.engine: off leaves it nowhere to keep its sessions: set another engine"
        );
        return None;
    };
    let agent = AgentSupervisor::new(open, config.agent.limits.connections, events.clone());
    agent.set_home(config.state.data_dir.join(AGENT_DIR));
    agent.set_model_grants(Arc::clone(config));
    Some(agent)
}

impl AgentRuntime {
    /// Not open yet. `socket` comes from the previous supervisor.
    pub(super) fn new(supervisor: Option<AgentSupervisor>, socket: Option<HostSocket>, mode: Mode) -> Self {
        Self { supervisor, socket, mode, open: None }
    }

    /// Starts it, and accepts its clients. `serve` serves its connections to the plugins.
    pub(super) async fn open(
        &mut self,
        config: &Arc<Config>,
        registry: &Registry,
        recognise: PeerClassifier,
        serve: impl Fn(UnixStream, Peer) -> io::Result<AgentConnection> + Send + Sync + 'static,
    ) {
        let Some(keeper) = self.supervisor.clone() else { return };
        keeper.reopen();
        match self.accept_clients(config, recognise, &keeper) {
            Ok(clients) => self.open = Some(OpenAgent { clients, started: None }),
            Err(error) => return fail(&keeper, &error),
        }
        let workspace =
            agent::workspace(config.agent.workspace.as_deref()).await.unwrap_or_else(|complaint| {
                tracing::warn!("{complaint}");
                None
            });
        let spec = spec(config, self.mode, workspace);
        match spec.map(|spec| start(config, registry, &keeper, spec, Arc::new(serve))) {
            Ok(started) => self.open.as_mut().expect("it was just put there").started = Some(started),
            // Clients are accepted all the same, so that they learn the reason, and not just that there is no
            // agent.
            Err(error) => fail(&keeper, &error),
        }
    }

    fn accept_clients(
        &mut self,
        config: &Config,
        recognise: PeerClassifier,
        keeper: &AgentSupervisor,
    ) -> Result<ClientListener, AgentStartError> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            // An existing socket belongs to a supervisor that is gone, or to one that hands over to us but
            // had no agent socket to pass on: we hold the directory's lock.
            None => bind_named(&config.runtime_dir, SOCKET_NAME, config.host_gid(), LiveSocket::Replace)?,
        };
        grant_peers(config, SOCKET_NAME)?;
        let clients =
            ClientListener::accept(&socket.listener, recognise, keeper.clone(), &config.agent.limits);
        self.socket = Some(socket);
        clients.map_err(AgentStartError::Accept)
    }

    /// The limiter that counts its clients' connections, while it accepts any.
    pub(super) fn connections(&self) -> Option<Arc<ConnectionLimiter>> {
        self.open.as_ref().map(|open| open.clients.connections())
    }

    /// Stops it: no more clients, and what has begun may finish within its grace period. `agent.sock` stays,
    /// and new clients wait in its queue. May be called again, and is cancel safe.
    pub(super) async fn close(&mut self, within: Duration) {
        let Some(keeper) = &self.supervisor else { return };
        if let Some(OpenAgent { started: Some(StartedAgent { service, .. }), .. }) = self.open.take() {
            service.stop().await;
        }
        keeper.close_endpoint(within).await;
        keeper.wait_received().await;
    }

    /// Waits until all is recorded that it changed before it was stopped, some seconds at most.
    pub(super) async fn wait_received(&self) {
        if let Some(keeper) = &self.supervisor {
            keeper.wait_received().await;
        }
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
    pub(super) fn release(self) {
        if let Some(file) = self.socket.and_then(|socket| socket.file) {
            file.retain();
        }
    }
}

/// Starts it, without waiting.
fn start(
    config: &Arc<Config>,
    registry: &Registry,
    keeper: &AgentSupervisor,
    spec: ServiceSpec,
    serve: ServeConnection,
) -> StartedAgent {
    let own = || rustix::process::getegid().as_raw();
    let gid = spec.home.identity.map_or_else(own, |identity| identity.gid);
    keeper.set_endpoint(AgentEndpoint { serve, gid });
    let told = tokio::spawn({
        let (config, keeper) = (Arc::clone(config), keeper.clone());
        async move {
            for problem in agent::configure(&config, &keeper, false).await {
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
    StartedAgent { service, _configuring: AbortOnDropHandle::new(told) }
}

fn fail(keeper: &AgentSupervisor, error: &AgentStartError) {
    keeper.set_failed(&format!("{error}; then start talon again (its plugins run on meanwhile)"));
}

fn spec(config: &Config, mode: Mode, workspace: Option<PathBuf>) -> Result<ServiceSpec, AgentStartError> {
    let program = agent::find_program(config.agent.program.as_deref())?;
    let name = PluginName::reserved(NAME);
    let uid_range = config.talon_plugin_settings().uid_range;
    let home = Home::prepare(&config.state.data_dir, &name, AGENT_DIR, uid_range)?;
    let url = config.state.agent_url.as_ref().or(config.state.url.as_ref());
    let server = url.filter(|_| config.state.engine == Engine::Postgres).map(Secret::expose);
    Ok(agent::service_spec(name, program, home, mode, workspace, server, config.agent.limits.nofile))
}
