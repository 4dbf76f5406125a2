//! `ListPlugins` and `GetPlugin`: what clients see of plugins. Every text that a plugin may have written goes through
//! the sanitizer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talon_plugin::entry::SandboxMode;
use talon_plugin::spec::Dialect;
use talon_plugin::{InstanceSnapshot, Plugin};
use talon_proto::host;
use talon_proto::host::{
    GetPluginRequest, GetPluginResponse, ListPluginsRequest, ListPluginsResponse, PluginCounters, Settings,
};
use talon_sanitize::Tally;
use tonic::{Request, Response, Status};

use super::peer::require;
use super::service::HostService;
use crate::config::Role;

pub(super) fn list(
    service: &HostService,
    request: &Request<ListPluginsRequest>,
) -> Result<Response<ListPluginsResponse>, Status> {
    require(request, Role::Call)?;
    Ok(Response::new(ListPluginsResponse { plugins: service.plugins() }))
}

pub(super) fn get(
    service: &HostService,
    request: &Request<GetPluginRequest>,
) -> Result<Response<GetPluginResponse>, Status> {
    require(request, Role::Call)?;
    let plugin = service.plugin(&request.get_ref().name)?;
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
        let line = |text: &str| self.sanitizer().line(text, &mut Tally::default()).into_owned();
        let reason: Vec<String> =
            snapshot.reason.iter().chain(&snapshot.notes).map(|text| line(text)).collect();
        host::Plugin {
            name: snapshot.name.to_string(),
            declared_name: snapshot.declared_name.as_deref().map(line).unwrap_or_default(),
            state: snapshot.state.as_str().to_owned(),
            desired: snapshot.desired.as_str().to_owned(),
            reason: reason.join("; "),
            instances: snapshot.instances.iter().map(instance).collect(),
            actions: count(snapshot.actions),
            deaths: snapshot.deaths,
            not_enforced: snapshot.not_enforced.iter().map(|text| line(text)).collect(),
            calls_in_flight: count(gauge.in_flight),
            calls_waiting: count(gauge.waiting),
            breaker: gauge.breaker.to_owned(),
            counters: Some(PluginCounters {
                log_lines: snapshot.log_lines,
                log_lines_dropped: snapshot.log_lines_dropped,
                ..gauge.counters
            }),
        }
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
        command: command.join(" "),
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
        source: spec.source.clone(),
        sandbox_mode: SandboxMode::from(spec.sandbox.mode).word().to_owned(),
        sandbox_profile: spec.sandbox.profile.clone(),
        sandbox_network: spec.sandbox.network.word().to_owned(),
        sandbox_grants: spec.sandbox.grants(),
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
