//! The gateway, while this supervisor serves. Problems with it never stop the rest of the supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use talon_jail::Mode;
use talon_plugin::service::{Home, Service, ServiceSpec};
use talon_plugin::{Events, Registry, SetupError};
use talon_plugin_config::PluginName;

use crate::agent::{AgentEndpoint, AgentSupervisor, ServeConnection};
use crate::config::Config;
use crate::gateway::{self, GatewaySupervisor, ProgramNotFoundError};
use crate::service::HealthChecks;

/// The service's name: in the log, and in the list of assigned uids.
const NAME: &str = "talon-gateway";
/// Its home, below the data directory. Nothing is kept there.
const HOME: &str = "gateway";

/// Why it does not run. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
enum GatewayStartError {
    #[error(transparent)]
    Program(#[from] ProgramNotFoundError),
    #[error(transparent)]
    Home(#[from] SetupError),
    #[error("{0}")]
    Configuration(String),
}

/// This supervisor's part of the gateway.
pub(super) struct GatewayRuntime {
    /// `None` if it is not enabled.
    supervisor: Option<GatewaySupervisor>,
    mode: Mode,
    /// Whether the machine limits TCP ports.
    limits_ports: bool,
    service: Option<Service>,
}

/// The gateway's supervisor; `None` if it is not enabled.
pub(super) fn supervisor(
    config: &Config,
    agent: Option<&AgentSupervisor>,
    events: &Events,
) -> Option<GatewaySupervisor> {
    config
        .gateway
        .enabled
        .then(|| GatewaySupervisor::new(agent.cloned(), config.gateway.max_role, events.clone()))
}

impl GatewayRuntime {
    /// Not open yet. `listener` comes from the service manager or the previous supervisor; without a gateway it is closed.
    pub(super) fn new(
        supervisor: Option<GatewaySupervisor>,
        listener: Option<OwnedFd>,
        mode: Mode,
        limits_ports: bool,
    ) -> Self {
        match (&supervisor, listener) {
            (Some(gateway), Some(listener)) => gateway.set_listener(listener),
            (None, Some(_)) => {
                tracing::warn!(
                    "a listener for the gateway was handed in, and gateway.enabled is false: it is closed"
                );
            }
            (_, None) => {}
        }
        Self { supervisor, mode, limits_ports, service: None }
    }

    /// Starts it. `serve` serves its connection to the host.
    pub(super) async fn open(&mut self, config: &Arc<Config>, registry: &Registry, serve: ServeConnection) {
        let Some(gateway) = self.supervisor.clone() else { return };
        gateway.reopen();
        match self.start(config, registry, &gateway, serve).await {
            Ok(service) => self.service = Some(service),
            Err(error) => {
                gateway.set_failed(&format!("{error}; then start talon again (all else runs on meanwhile)"))
            }
        }
    }

    async fn start(
        &self,
        config: &Arc<Config>,
        registry: &Registry,
        gateway: &GatewaySupervisor,
        serve: ServeConnection,
    ) -> Result<Service, GatewayStartError> {
        if let Some(problem) = gateway.configure(config).await.into_iter().next() {
            return Err(GatewayStartError::Configuration(problem));
        }
        let spec = self.spec(config)?;
        let own = || rustix::process::getegid().as_raw();
        let gid = spec.home.identity.map_or_else(own, |identity| identity.gid);
        gateway.set_endpoint(AgentEndpoint { serve, gid });
        let service = registry.service(spec, Arc::new(gateway.clone()));
        let life = &config.plugins.tools.lifecycle;
        let checks = HealthChecks {
            interval: life.health_check_interval.get(),
            timeout: life.health_check_timeout.get(),
            threshold: life.health_failure_threshold,
        };
        tokio::spawn(gateway::watch(gateway.clone(), service.clone(), checks));
        Ok(service)
    }

    fn spec(&self, config: &Config) -> Result<ServiceSpec, GatewayStartError> {
        let program = gateway::find_program(config.gateway.program.as_deref())?;
        let name = PluginName::reserved(NAME);
        let uid_range = config.talon_plugin_settings().uid_range;
        let home = Home::prepare(&config.state.data_dir, &name, HOME, uid_range)?;
        Ok(gateway::service_spec(name, program, home, self.mode, &config.gateway, self.limits_ports))
    }

    /// Stops it; what it has begun may finish. The listener stays, and new clients wait in its queue. May be called again, and is
    /// cancel safe.
    pub(super) async fn close(&mut self, within: Duration) {
        let Some(gateway) = &self.supervisor else { return };
        if let Some(service) = self.service.take() {
            service.stop().await;
        }
        gateway.close_endpoint(within).await;
    }

    /// A duplicate of the listener, if there is one.
    pub(super) fn listener(&self) -> io::Result<Option<OwnedFd>> {
        self.supervisor.as_ref().map_or(Ok(None), GatewaySupervisor::listener)
    }
}
