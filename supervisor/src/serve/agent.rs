//! The agent, while this supervisor is the one that serves. Whatever is wrong with it, everything else goes on.

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

/// What it is called: in the log, and among the uids that were handed out.
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

/// What of it runs here.
pub(super) struct AgentSide {
    /// `None`: nobody wants an agent.
    keeper: Option<Keeper>,
    /// `agent.sock`, from the first opening on: it stays when the agent is started again, and while another supervisor takes over.
    socket: Option<HostSocket>,
    open: Option<Open>,
}

/// What there is of it between opening and closing.
struct Open {
    _clients: Clients,
    started: Option<Started>,
}

struct Started {
    service: Service,
    _told: AbortOnDropHandle<()>,
}

/// What holds on to the agent; `None` where nobody wants one, or where it could keep nothing.
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
    /// Not open. `socket` is what an earlier supervisor handed over.
    pub(super) fn new(keeper: Option<Keeper>, socket: Option<HostSocket>) -> Self {
        Self { keeper, socket, open: None }
    }

    /// Starts it, and lets its clients in. `serve` leads to the plugins.
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
            // Its clients are let in all the same, so that they learn this, and not that there is no agent.
            Err(error) => fail(&keeper, &error),
        }
    }

    fn let_in(&mut self, config: &Config, recognise: Recognise, keeper: &Keeper) -> Result<Clients, NotRun> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            // One that is there belongs to a supervisor that is gone, or hands over to us without knowing of it: the directory's
            // lock is ours.
            None => bind_named(&config.runtime_dir, SOCKET_NAME, config.host_gid(), Living::Goes)?,
        };
        let clients = Clients::accept(&socket.listener, recognise, keeper.clone());
        self.socket = Some(socket);
        clients.map_err(NotRun::Accept)
    }

    /// Stops it: no more clients, and what it has begun may finish within its grace period. `agent.sock` stays, and whoever
    /// connects waits in its queue. May be called again, and dropped in between.
    pub(super) async fn close(&mut self, within: Duration) {
        let Some(keeper) = &self.keeper else { return };
        if let Some(Open { started: Some(Started { service, .. }), .. }) = self.open.take() {
            service.stop().await;
        }
        keeper.close_door(within).await;
    }

    /// `agent.sock`, if it is there.
    pub(super) fn socket(&self) -> Option<&HostSocket> {
        self.socket.as_ref()
    }

    /// Everything is ours now: the file that another supervisor made, too.
    pub(super) fn claim(&mut self) {
        if let Some(file) = self.socket.as_mut().and_then(|socket| socket.file.as_mut()) {
            file.claim();
        }
    }

    /// Leaves the file to whoever has the socket now.
    pub(super) fn keep(self) {
        if let Some(file) = self.socket.and_then(|socket| socket.file) {
            file.keep();
        }
    }
}

/// Starts it, and waits for nothing.
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
