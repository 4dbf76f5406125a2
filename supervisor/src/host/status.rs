//! `GetStatus`: the supervisor's own state.

use std::path::Path;

use talon_plugin_config::discover::RejectedPlugin;
use talon_proto::agent;
use talon_proto::host::{
    self, AgentProvider, AgentStatus, GatewayStatus, GetStatusRequest, GetStatusResponse, RefusedPlugin,
    StateStatus,
};
use talon_sanitize::Raw;
use tonic::{Request, Response, Status};

use super::context::HostContext;
use super::plugin_roles::plugin_roles;
use crate::agent::{AgentReport, MemoryVectors, Provider};
use crate::config::Role;
use crate::gateway::GatewaySupervisor;
use crate::peer::require;
use crate::service::ManagedServiceStatus;
use crate::to_wire::{unix_ms, wire};

pub(super) fn status(
    context: &HostContext,
    request: &Request<GetStatusRequest>,
) -> Result<Response<GetStatusResponse>, Status> {
    let permitted = require(request, Role::Call)?;
    let about = &context.info;
    // File names are untrusted text.
    let line = |text: Raw<'_>| wire(text.line());
    let refused = |refused: &RejectedPlugin| RefusedPlugin {
        name: line(Raw::from(&refused.name)),
        path: path(&refused.path),
        reason: line(Raw::from(&refused.reason)),
    };
    let extensions = context.extensions(permitted.visibility(), None);
    Ok(Response::new(GetStatusResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_unix_ms: unix_ms(about.started),
        runtime_dir: path(&about.runtime_dir),
        data_dir: path(&about.data_dir),
        config_file: about.config_file.as_deref().map(path).unwrap_or_default(),
        state: if context.dispatcher.is_draining() { "draining" } else { "serving" }.to_owned(),
        plugins: context.plugins(permitted.visibility()),
        not_enforced: about.not_enforced.iter().map(|text| line(Raw::from(text))).collect(),
        refused: about
            .reloader
            .refused()
            .iter()
            .filter(|refused| permitted.visibility().can_see_plugin(&refused.name))
            .map(refused)
            .collect(),
        you: Some((&permitted.peer).into()),
        state_service: Some(
            about.state.as_ref().map_or_else(no_state, |keeper| state_status(&keeper.status())),
        ),
        config_unix_ms: unix_ms(about.reloader.read_at()),
        config_problem: about.reloader.problem().map(wire).unwrap_or_default(),
        usage: Some(about.usages.latest().supervisor_usage()),
        tier: about.tier.to_owned(),
        audit: Some(about.audit.status()),
        taken_over: context.registry.adoption_counts().taken_over.try_into().unwrap_or(u32::MAX),
        log_lines_dropped: talon_telemetry::dropped(),
        agent: Some(
            about
                .agent
                .as_ref()
                .map_or_else(no_agent, |keeper| agent_status(keeper.status(), keeper.report())),
        ),
        plugin_roles: plugin_roles(context, permitted.visibility(), &extensions),
        extensions,
        gateway: Some(about.gateway.as_ref().map_or_else(no_gateway, gateway_status)),
    }))
}

fn state_status(status: &ManagedServiceStatus) -> StateStatus {
    StateStatus {
        state: status.state.as_str().to_owned(),
        engine: status.engine.clone(),
        place: status.place.clone(),
        problem: status.problem.as_ref().map(wire).unwrap_or_default(),
        pid: status.pid,
        uid: status.uid,
        restarts: status.restarts,
    }
}

fn no_state() -> StateStatus {
    StateStatus { state: "off".to_owned(), ..StateStatus::default() }
}

fn agent_status(status: ManagedServiceStatus, told: Option<AgentReport>) -> AgentStatus {
    let (turns_running, approvals_pending) =
        told.as_ref().map(|told| (told.turns_running, told.approvals_pending)).unzip();
    let AgentReport { providers, problems: now, memory_vectors, schedule, notifications, shadow, .. } =
        told.unwrap_or_default();
    let mut problems: Vec<_> = status.problem.into_iter().chain(status.complaints).collect();
    let new: Vec<_> = now.into_iter().filter(|problem| !problems.contains(problem)).collect();
    problems.extend(new);
    let provider = |Provider { name, state, why }| AgentProvider {
        name: wire(name),
        state: wire(state),
        why: wire(why),
    };
    AgentStatus {
        state: status.state.as_str().to_owned(),
        pid: status.pid,
        uid: status.uid,
        restarts: status.restarts,
        problems: problems.into_iter().map(wire).collect(),
        engine: status.engine,
        place: status.place,
        turns_running,
        approvals_pending,
        providers: providers.into_iter().map(provider).collect(),
        memory_vectors: memory_vectors.map(vectors),
        schedule: schedule.map(schedule_status),
        notifications: notifications.map(notification_status),
        shadow: shadow.map(shadow_status),
    }
}

fn schedule_status(told: agent::ScheduleStatus) -> host::ScheduleStatus {
    let agent::ScheduleStatus { jobs, paused, running, waiting, next_unix_ms, proposed } = told;
    host::ScheduleStatus { jobs, paused, running, waiting, next_unix_ms, proposed }
}

fn notification_status(told: agent::NotificationStatus) -> host::NotificationStatus {
    let agent::NotificationStatus { entries, waiting, delivered, refused, given_up, dropped } = told;
    host::NotificationStatus { entries, waiting, delivered, refused, given_up, dropped }
}

fn shadow_status(told: agent::ShadowStatus) -> host::ShadowStatus {
    let agent::ShadowStatus {
        watchers,
        watchers_connected,
        watcher_seen_unix_ms,
        limits,
        paused,
        budget_spent,
        quiet_hours,
        local_time,
        quiet,
        local_only,
        problem,
        waiting,
    } = told;
    host::ShadowStatus {
        watchers,
        watchers_connected,
        watcher_seen_unix_ms,
        limits,
        paused,
        budget_spent,
        quiet_hours,
        local_time,
        quiet,
        local_only,
        problem,
        waiting,
    }
}

fn vectors(told: MemoryVectors) -> host::MemoryVectors {
    let MemoryVectors { model, memories, vectors, local_only, refused, engine, failure } = told;
    host::MemoryVectors {
        model: wire(model),
        memories,
        vectors,
        local_only,
        refused,
        engine: wire(engine),
        failure: wire(failure),
    }
}

fn no_agent() -> AgentStatus {
    AgentStatus { state: "off".to_owned(), ..AgentStatus::default() }
}

fn gateway_status(gateway: &GatewaySupervisor) -> GatewayStatus {
    let (status, told) = (gateway.status(), gateway.report());
    GatewayStatus {
        state: status.state.as_str().to_owned(),
        pid: status.pid,
        uid: status.uid,
        restarts: status.restarts,
        problems: status.problem.into_iter().chain(status.complaints).map(wire).collect(),
        url: gateway.url().unwrap_or_default(),
        connections: told.map(|told| told.connections),
        requests: told.map(|told| told.requests),
        refused: told.map(|told| told.refused),
    }
}

fn no_gateway() -> GatewayStatus {
    GatewayStatus { state: "off".to_owned(), ..GatewayStatus::default() }
}

fn path(path: &Path) -> String {
    wire(Raw::of(path.display()).line())
}
