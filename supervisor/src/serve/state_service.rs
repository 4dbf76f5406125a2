//! Starts the state service, before all plugins, since they expect their state sockets at their start.

use std::ops::RangeInclusive;
use std::sync::Arc;

use talon_jail::Mode;
use talon_plugin::service::{Home, Service, ServiceSpec};
use talon_plugin::{Events, ModelSockets, Registry, Settings, StateSockets};
use talon_plugin_config::PluginName;

use super::ServeFailure;
use super::signals::Signals;
use crate::agent::AgentSupervisor;
use crate::config::{Config, Engine, Environment, Secret};
use crate::service::HealthChecks;
use crate::state::{self, StateSupervisor};

/// The service's name: in the log, and in the list of assigned uids.
const NAME: &str = "talon-state";

/// The state service's supervisor; `None` if state is off.
pub fn supervisor(config: &Arc<Config>, events: &Events) -> Option<StateSupervisor> {
    let open = state::plugins(&config.state)?;
    let quotas = Arc::clone(config);
    Some(StateSupervisor::new(
        open,
        Arc::new(move |plugin| quotas.state_quota(plugin.as_str())),
        events.clone(),
    ))
}

/// The settings that all plugins share, including their access to state and to models.
pub fn settings(
    config: &Config,
    keeper: Option<&StateSupervisor>,
    agent: Option<&AgentSupervisor>,
) -> Settings {
    let state = keeper.map(|keeper| Arc::new(keeper.clone()) as Arc<dyn StateSockets>);
    let models = agent.map(|agent| Arc::new(agent.clone()) as Arc<dyn ModelSockets>);
    Settings { state, models, ..config.talon_plugin_settings() }
}

/// Starts the service and waits until its database is open. `Err(None)`: a signal interrupted the start.
pub(super) async fn start(
    config: &Config,
    registry: &Registry,
    keeper: &StateSupervisor,
    mode: Mode,
    signals: &mut Signals,
) -> Result<Service, Option<ServeFailure>> {
    report_imports(config);
    let service =
        run(config, config.talon_plugin_settings().uid_range, registry, keeper, mode).map_err(Some)?;
    tokio::select! {
        opened = keeper.wait_until_open() => opened.map(|()| service).map_err(|error| Some(error.into())),
        stop = signals.stop() => {
            tracing::info!(signal = stop.name(), "stopping: the state service was still starting");
            Err(None)
        }
    }
}

/// Starts the service without waiting: plugins that connect meanwhile wait in the queues of their sockets.
///
/// # Errors
/// There is no program `talon-state`, or its home cannot be prepared.
pub fn run(
    config: &Config,
    uid_range: Option<RangeInclusive<u32>>,
    registry: &Registry,
    keeper: &StateSupervisor,
    mode: Mode,
) -> Result<Service, ServeFailure> {
    let service = registry.service(spec(config, uid_range, mode)?, Arc::new(keeper.clone()));
    let life = &config.plugins.tools.lifecycle;
    let checks = HealthChecks {
        interval: life.health_check_interval.get(),
        timeout: life.health_check_timeout.get(),
        threshold: life.health_failure_threshold,
    };
    tokio::spawn(state::watch(keeper.clone(), service.clone(), checks));
    Ok(service)
}

/// Logs that there is state that could be imported, until an import was made.
fn report_imports(config: &Config) {
    let home = Environment::of_process().home;
    let marker = config.state.data_dir.join(state::IMPORTED_FILE);
    let marker = marker.display();
    for dir in state::to_import(&config.state.data_dir, home.as_deref()) {
        let dir = dir.display();
        tracing::warn!(
            "{dir} holds state that is not read: take it over with `talon import {dir}` (--dry-run first), or \
             `touch {marker}` to hear no more of it"
        );
    }
}

fn spec(
    config: &Config,
    uid_range: Option<RangeInclusive<u32>>,
    mode: Mode,
) -> Result<ServiceSpec, ServeFailure> {
    let program = state::find_program(config.state.program.as_deref())?;
    let name = PluginName::reserved(NAME);
    let home = Home::prepare(&config.state.data_dir, &name, state::STATE_DIR, uid_range)?;
    let server = config.state.url.as_ref().filter(|_| config.state.engine == Engine::Postgres);
    Ok(state::service(name, program, home, mode, server.map(Secret::expose)))
}
