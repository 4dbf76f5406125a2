//! `ListPlugins` and `GetPlugin`: what clients see of plugins.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talon_plugin::entry::SandboxMode;
use talon_plugin::name::RESERVED_NAME;
use talon_plugin::spec::Dialect;
use talon_plugin::{Desired, InstanceSnapshot, Plugin, State};
use talon_proto::host;
use talon_proto::host::{
    GetPluginRequest, GetPluginResponse, ListPluginsRequest, ListPluginsResponse, PluginCounters, Settings,
};
use talon_proto::plugin::PluginCapabilities;
use talon_sanitize::{Raw, Sanitized};
use tonic::{Request, Response, Status};

use super::peer::require;
use super::service::HostService;
use super::wire;
use crate::config::Role;

pub(super) fn list(
    service: &HostService,
    request: &Request<ListPluginsRequest>,
) -> Result<Response<ListPluginsResponse>, Status> {
    require(request, Role::Call)?;
    let mut plugins = service.plugins();
    // Whoever lists what can be called has to find the supervisor's own actions too.
    plugins.extend(service.door.core().map(|(capabilities, counters)| core(&capabilities, counters)));
    Ok(Response::new(ListPluginsResponse { plugins }))
}

pub(super) fn get(
    service: &HostService,
    request: &Request<GetPluginRequest>,
) -> Result<Response<GetPluginResponse>, Status> {
    require(request, Role::Call)?;
    let name = &request.get_ref().name;
    if name == RESERVED_NAME
        && let Some((capabilities, counters)) = service.door.core()
    {
        let plugin = Some(core(&capabilities, counters));
        let capabilities = Some(capabilities.as_ref().clone());
        return Ok(Response::new(GetPluginResponse { plugin, capabilities, settings: None }));
    }
    let plugin = service.plugin(name)?;
    Ok(Response::new(GetPluginResponse {
        plugin: Some(service.view(&plugin)),
        capabilities: service.door.capabilities(&plugin).map(|known| known.as_ref().clone()),
        settings: Some(settings(service, &plugin)),
    }))
}

impl HostService {
    /// All plugins as clients see them.
    pub(super) fn plugins(&self) -> Vec<host::Plugin> {
        self.registry.list().iter().map(|plugin| self.view(plugin)).collect()
    }

    /// One plugin as clients see it.
    pub(super) fn view(&self, plugin: &Plugin) -> host::Plugin {
        let snapshot = plugin.snapshot();
        let gauge = self.door.gauge(plugin);
        let reason = Sanitized::joined(snapshot.reason.iter().chain(&snapshot.notes), "; ");
        host::Plugin {
            name: snapshot.name.to_string(),
            declared_name: wire(snapshot.declared_name.unwrap_or_default()),
            state: snapshot.state.as_str().to_owned(),
            desired: snapshot.desired.as_str().to_owned(),
            reason: wire(reason),
            instances: snapshot.instances.iter().map(instance).collect(),
            actions: count(snapshot.actions),
            deaths: snapshot.deaths,
            not_enforced: snapshot.not_enforced.into_iter().map(wire).collect(),
            calls_in_flight: count(gauge.in_flight),
            calls_waiting: count(gauge.waiting),
            breaker: gauge.breaker.to_owned(),
            quarantined: gauge.quarantined,
            counters: Some(PluginCounters {
                log_lines: snapshot.log_lines,
                log_lines_dropped: snapshot.log_lines_dropped,
                ..gauge.counters
            }),
        }
    }
}

/// The supervisor's own actions as clients see them: a plugin without a process.
fn core(capabilities: &PluginCapabilities, counters: PluginCounters) -> host::Plugin {
    host::Plugin {
        name: RESERVED_NAME.to_owned(),
        declared_name: RESERVED_NAME.to_owned(),
        state: State::Ready.as_str().to_owned(),
        desired: Desired::Up.as_str().to_owned(),
        reason: "the supervisor's own".to_owned(),
        actions: count(capabilities.actions.len()),
        breaker: "closed".to_owned(),
        counters: Some(counters),
        ..host::Plugin::default()
    }
}

fn instance(instance: &InstanceSnapshot) -> host::Instance {
    host::Instance {
        index: instance.index,
        state: instance.state.as_str().to_owned(),
        pid: instance.pid.unwrap_or_default(),
        generation: instance.generation,
        uid: instance.uid.unwrap_or_default(),
        ready_since_unix_ms: instance.ready_since.map(unix_ms).unwrap_or_default(),
        start_to_ready_us: instance.start_to_ready.map(micros).unwrap_or_default(),
        calls_in_flight: count(instance.calls_in_flight),
    }
}

fn settings(service: &HostService, plugin: &Plugin) -> Settings {
    let spec = plugin.spec();
    let snapshot = plugin.snapshot();
    let policy = service.door.policy(plugin);
    let command: Vec<String> =
        std::iter::once(spec.program.display().to_string()).chain(spec.args.clone()).collect();
    Settings {
        command: wire(Raw::from(command.join(" ")).line()),
        sha256: snapshot.digest.or_else(|| spec.sha256.clone()).unwrap_or_default(),
        dialect: match snapshot.dialect.unwrap_or(spec.dialect) {
            Dialect::Auto => "auto",
            Dialect::GoPlugin => "go-plugin",
            Dialect::OpenTalon => "opentalon",
        }
        .to_owned(),
        timeout_ms: u64::try_from(policy.timeouts.default.as_millis()).unwrap_or(u64::MAX),
        max_response_bytes: policy.max_response_bytes as u64,
        max_restarts: spec.lifecycle.max_restarts,
        restart_on_failure: spec.lifecycle.restart_on_failure,
        source: wire(Raw::from(&spec.source).line()),
        sandbox_mode: SandboxMode::from(spec.sandbox.mode).word().to_owned(),
        sandbox_profile: spec.sandbox.profile.clone(),
        sandbox_network: spec.sandbox.network.word().to_owned(),
        sandbox_grants: spec
            .sandbox
            .grants()
            .into_iter()
            .map(|grant| wire(Raw::from(grant).line()))
            .collect(),
    }
}

/// A count for the wire; no count of ours comes near its limit.
pub(super) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn unix_ms(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
