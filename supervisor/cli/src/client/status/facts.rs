//! The table of facts about the supervisor.

use std::time::{Duration, SystemTime};

use talon_proto::host::{
    AgentProvider, AgentStatus, AuditStatus, Extension, GatewayStatus, GetStatusResponse, StateStatus, Usage,
};

use crate::show;
use crate::show::counted;
use crate::table::{Cell, Table};

/// One fact per row.
pub(super) fn table(status: &GetStatusResponse) -> Table {
    let mut table = Table::new(&[]);
    let mut row = |name: &str, value: Cell| table.row(vec![name.into(), value]);
    row("supervisor", supervisor(status).into());
    let config = if status.config_file.is_empty() { "none: built-in defaults" } else { &status.config_file };
    let read = match status.config_unix_ms {
        0 => String::new(),
        at => format!(", read {} ago", show::short(since(at))),
    };
    row("config", format!("{config}{read}").into());
    row("runtime dir", status.runtime_dir.as_str().into());
    row("data dir", status.data_dir.as_str().into());
    if let Some(kept) = &status.state_service {
        row("plugin state", show::state(&kept.state, ""));
        let about = state_summary(kept);
        if !about.is_empty() {
            row("", about.into());
        }
    }
    if let Some(agent) = status.agent.as_ref().filter(|agent| agent.state != "off") {
        row("agent", show::state(&agent.state, ""));
        for about in [
            agent_summary(agent),
            agent_activity(agent),
            schedule(agent),
            notifications(agent),
            providers(agent),
        ] {
            if !about.is_empty() {
                row("", about.into());
            }
        }
    }
    if let Some(gateway) = status.gateway.as_ref().filter(|gateway| gateway.state != "off") {
        row("gateway", show::state(&gateway.state, ""));
        row("", gateway_summary(gateway).into());
    }
    if !status.extensions.is_empty() {
        row("extensions", extensions(&status.extensions).into());
    }
    if let Some(audit) = &status.audit {
        row("audit", audit_summary(audit).into());
    }
    if !status.tier.is_empty() {
        row("sandbox", status.tier.as_str().into());
    }
    if let Some(usage) = &status.usage {
        row("uses", usage_summary(usage).into());
    }
    if status.log_lines_dropped > 0 {
        let text =
            format!("{} of its log lines were lost: the receiver was too slow", status.log_lines_dropped);
        row("log", text.into());
    }
    if let Some(you) = &status.you {
        row("you", format!("uid {}, role {}, origin {}", you.uid, you.role, you.origin).into());
    }
    table
}

/// Where the gateway serves, its process, and what goes through it. Its problems are listed under attention.
fn gateway_summary(gateway: &GatewayStatus) -> String {
    let mut parts: Vec<String> =
        Some(gateway.url.clone()).filter(|url| !url.is_empty()).into_iter().collect();
    parts.extend(service("", "", (gateway.pid, gateway.uid), gateway.restarts));
    if let Some(connections) = gateway.connections {
        parts.push(counted(connections.into(), "connection"));
    }
    if let Some(refused) = gateway.refused.filter(|refused| *refused > 0) {
        parts.push(format!("{refused} refused for a limit"));
    }
    parts.join("; ")
}

/// How many entries work, and how many do not.
fn extensions(all: &[Extension]) -> String {
    let parts = ["ready", "waiting", "failing"].into_iter().filter_map(|state| {
        let count = all.iter().filter(|extension| extension.state == state).count();
        (count > 0).then(|| format!("{count} {state}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn supervisor(status: &GetStatusResponse) -> String {
    let up = show::short(since(status.started_unix_ms));
    let mut text = format!("talon {}, pid {}, up for {up}", status.version, status.pid);
    match status.taken_over {
        0 => {}
        1 => text.push_str("; took over 1 process"),
        count => text.push_str(&format!("; took over {count} processes")),
    }
    text
}

/// The service that stores the plugins' state, or why there is none.
fn state_summary(kept: &StateStatus) -> String {
    let mut parts = service(&kept.engine, &kept.place, (kept.pid, kept.uid), kept.restarts);
    if !kept.problem.is_empty() {
        parts.push(kept.problem.clone());
    }
    parts.join("; ")
}

/// The agent's process and database. Its problems are listed under attention.
fn agent_summary(agent: &AgentStatus) -> String {
    service(&agent.engine, &agent.place, (agent.pid, agent.uid), agent.restarts).join("; ")
}

/// The agent's current work, and pending approvals.
fn agent_activity(agent: &AgentStatus) -> String {
    let turns = agent.turns_running.map(|count| counted(count.into(), "turn") + " under way");
    let waiting = agent.approvals_pending.map(|count| match count {
        0 => "nothing waits for an approval".to_owned(),
        _ => counted(count.into(), "approval") + " pending: see `talon approval list`",
    });
    turns.into_iter().chain(waiting).collect::<Vec<_>>().join("; ")
}

/// The jobs at planned times.
fn schedule(agent: &AgentStatus) -> String {
    let Some(schedule) = &agent.schedule else { return String::new() };
    let mut parts = vec![counted(schedule.jobs.into(), "job")];
    for (count, what) in
        [(schedule.paused, "paused"), (schedule.running, "running"), (schedule.waiting, "waiting")]
    {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if let Some(next) = schedule.next_unix_ms {
        parts.push(format!("next {}", show::timestamp(next)));
    }
    if schedule.proposed > 0 {
        parts.push(format!("{} proposed: see `talon schedule list`", schedule.proposed));
    }
    format!("schedule: {}", parts.join(", "))
}

/// The notifications, and what to do about those that did not arrive.
fn notifications(agent: &AgentStatus) -> String {
    let Some(told) = &agent.notifications else { return String::new() };
    let mut parts = vec![counted(told.entries.into(), "rule")];
    let counts = [
        (told.waiting, "waiting"),
        (told.delivered, "delivered"),
        (told.refused, "refused"),
        (told.given_up, "given up"),
    ];
    parts.extend(
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    if told.dropped > 0 {
        parts.push(format!("{} dropped: more came than the agent takes", told.dropped));
    }
    let hint = if told.refused + told.given_up > 0 { ": see `talon notification list`" } else { "" };
    format!("notifications: {}{hint}", parts.join(", "))
}

/// The model providers and their problems.
fn providers(agent: &AgentStatus) -> String {
    let one = |provider: &AgentProvider| match provider.why.as_str() {
        "" => format!("{} {}", provider.name, provider.state),
        why => format!("{} {} ({why})", provider.name, provider.state),
    };
    let all: Vec<String> = agent.providers.iter().map(one).collect();
    if all.is_empty() { String::new() } else { format!("providers: {}", all.join(", ")) }
}

fn service(engine: &str, place: &str, (pid, uid): (u32, u32), restarts: u64) -> Vec<String> {
    let mut parts = Vec::new();
    if !engine.is_empty() {
        parts.push(format!("{engine} {place}"));
    }
    if pid != 0 {
        parts.push(format!("pid {pid}, uid {uid}"));
    }
    if restarts > 0 {
        parts.push(format!("started again {restarts} times"));
    }
    parts
}

fn audit_summary(audit: &AuditStatus) -> String {
    let mut text = audit.state.clone();
    if !audit.file.is_empty() {
        text.push_str(&format!(": {} records, now to {}", audit.records, audit.file));
    }
    if audit.lost > 0 {
        text.push_str(&format!("; {} calls have none", audit.lost));
    }
    text
}

fn usage_summary(usage: &Usage) -> String {
    let cpu = show::short(Duration::from_micros(usage.cpu_us));
    format!("{} of memory, {cpu} of processor time", show::bytes(usage.memory_bytes))
}

fn since(unix_ms: u64) -> Duration {
    SystemTime::now().duration_since(show::system_time(unix_ms)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_does_is_told_once_it_has_said_so() {
        let quiet = AgentStatus::default();
        assert_eq!((agent_activity(&quiet), providers(&quiet)), (String::new(), String::new()));
        let provider = |name: &str, state: &str, why: &str| AgentProvider {
            name: name.into(),
            state: state.into(),
            why: why.into(),
        };
        let busy = AgentStatus {
            turns_running: Some(1),
            approvals_pending: Some(2),
            providers: vec![provider("a", "ready", ""), provider("b", "down", "no key")],
            ..AgentStatus::default()
        };
        assert_eq!(agent_activity(&busy), "1 turn under way; 2 approvals pending: see `talon approval list`");
        assert_eq!(providers(&busy), "providers: a ready, b down (no key)");
        let idle = AgentStatus { turns_running: Some(0), approvals_pending: Some(0), ..quiet };
        assert_eq!(agent_activity(&idle), "0 turns under way; nothing waits for an approval");
    }
}
