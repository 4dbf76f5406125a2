//! Problems that need an operator's attention, each with what to do.

use serde_json::{Value, json};
use talon_proto::host::{AgentStatus, GatewayStatus, GetStatusResponse, Plugin, StateStatus};

use crate::{script_table, show};

/// One problem.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AttentionItem {
    /// A plugin, or a part of the supervisor.
    pub(super) subject: String,
    /// The problem, and at the end what to do next.
    pub(super) message: String,
}

impl AttentionItem {
    fn new(who: &str, says: impl Into<String>) -> Self {
        Self { subject: who.to_owned(), message: says.into() }
    }

    pub(super) fn json(&self) -> Value {
        json!({ "about": self.subject, "message": self.message })
    }
}

/// All problems; the supervisor's own come first.
pub(super) fn attention(status: &GetStatusResponse) -> Vec<AttentionItem> {
    let mut items = Vec::new();
    if !status.config_problem.is_empty() {
        let says = format!(
            "the last configuration was refused, and the one before it holds: {}; mend it, look with `talon config check`, \
             then `talon reload`",
            status.config_problem
        );
        items.push(AttentionItem::new("config", says));
    }
    status.state_service.as_ref().into_iter().for_each(|state| of_state(state, &mut items));
    status.agent.as_ref().into_iter().for_each(|agent| of_agent(agent, &mut items));
    status.gateway.as_ref().into_iter().for_each(|gateway| of_gateway(gateway, &mut items));
    if let Some(audit) = &status.audit {
        if audit.state == "failing" {
            let says = format!("calls are not recorded: {}; see docs/audit.md", audit.problem);
            items.push(AttentionItem::new("audit", says));
        }
        if audit.state == "damaged" {
            let says = format!("{}; see docs/audit.md", audit.problem);
            items.push(AttentionItem::new("audit", says));
        } else if audit.lost > 0 {
            let says = format!(
                "{} calls have no record, because the disk was too slow or full; give it a faster or larger one (audit.dir), or raise audit.wait",
                audit.lost
            );
            items.push(AttentionItem::new("audit", says));
        }
    }
    status.plugins.iter().for_each(|plugin| of_plugin(plugin, &mut items));
    // One that waits is reported with its plugin.
    for failing in status.extensions.iter().filter(|extension| extension.state == "failing") {
        let says = format!("{}; see `talon extension list`", failing.reason);
        items.push(AttentionItem::new(&format!("{}/{}", failing.role, failing.name), says));
    }
    for refused in &status.refused {
        items.push(AttentionItem::new(
            &refused.name,
            format!("refused: {} ({})", refused.reason, refused.path),
        ));
    }
    items
}

/// Notes that need no action: remarks of running plugins.
pub(super) fn notes(status: &GetStatusResponse) -> Vec<AttentionItem> {
    let well = status.plugins.iter().filter(|plugin| plugin.state == "ready" && !plugin.reason.is_empty());
    well.map(|plugin| AttentionItem::new(&plugin.name, plugin.reason.clone())).collect()
}

/// Why plugins cannot read or write all of their state.
fn of_state(state: &StateStatus, items: &mut Vec<AttentionItem>) {
    let says = match state.state.as_str() {
        "full" => format!(
            "full: plugins' writes are refused, and reads are answered: {}; make room where `state.data_dir` is, or raise \
             `state.max_bytes`",
            state.problem
        ),
        "unresponsive" => {
            format!("unresponsive: {}; see `talon event list` and the supervisor's log", state.problem)
        }
        "unavailable" | "backoff" => format!(
            "{}: plugins cannot read or write what they keep; see `talon doctor` and the supervisor's log",
            state.state
        ),
        _ => return,
    };
    items.push(AttentionItem::new("plugin state", says));
}

/// The agent's problems; and if it does not run without giving a reason, that.
fn of_agent(agent: &AgentStatus, items: &mut Vec<AttentionItem>) {
    if agent.state == "full" {
        let says = format!(
            "full: sessions and memories are read and not written, and turns fail: {}; make room at {}, or raise `state.max_bytes`",
            agent.problems.join("; "),
            agent.place
        );
        return items.push(AttentionItem::new("agent", says));
    }
    let down = matches!(agent.state.as_str(), "failed" | "backoff" | "unresponsive");
    let state = if down { format!("{}: ", agent.state) } else { String::new() };
    for problem in &agent.problems {
        items.push(AttentionItem::new("agent", format!("{state}{problem}")));
    }
    if down {
        let says = "no client can reach it: see `talon doctor`, and its lines in the supervisor's log (plugin=talon-agent)";
        items.push(AttentionItem::new("agent", says));
    }
}

/// The gateway's problems; and if it does not run without giving a reason, that.
fn of_gateway(gateway: &GatewayStatus, items: &mut Vec<AttentionItem>) {
    let down = matches!(gateway.state.as_str(), "failed" | "backoff" | "unresponsive");
    let state = if down { format!("{}: ", gateway.state) } else { String::new() };
    for problem in &gateway.problems {
        items.push(AttentionItem::new("gateway", format!("{state}{problem}")));
    }
    if down && gateway.problems.is_empty() {
        let says = "its clients wait: see its lines in the supervisor's log (plugin=talon-gateway)";
        items.push(AttentionItem::new("gateway", says));
    }
}

fn of_plugin(plugin: &Plugin, items: &mut Vec<AttentionItem>) {
    let name = &plugin.name;
    let mut push = |says: String| items.push(AttentionItem::new(name, says));
    if matches!(plugin.state.as_str(), "failed" | "refused" | "unhealthy" | "backoff") {
        let reason = if plugin.reason.is_empty() { "for no reason that is known" } else { &plugin.reason };
        // Most reasons end with what to do.
        let next = if plugin.reason.contains('`') {
            String::new()
        } else {
            format!("; see `talon plugin logs {name}`")
        };
        push(format!("{}: {reason}{next}", plugin.state));
    }
    if !plugin.replacement_problem.is_empty() {
        push(format!(
            "what runs is older than what should: {}; mend it, then `talon plugin reload {name}`",
            plugin.replacement_problem
        ));
    }
    if plugin.quarantined {
        push(format!(
            "in quarantine, because its answers held too much control syntax: calls are refused until `talon plugin start \
             {name}`"
        ));
    }
    if !plugin.breaker.is_empty() && plugin.breaker != "closed" {
        push(format!(
            "its circuit breaker is {}: calls are refused until it has recovered; see `talon plugin logs {name}`",
            plugin.breaker
        ));
    }
    if let Some(says) = show::changed(plugin) {
        push(says);
    }
    if let Some(says) = show::events(plugin) {
        push(says);
    }
    items
        .extend(script_table::problems(plugin).iter().map(|(script, says)| AttentionItem::new(script, says)));
}

#[cfg(test)]
mod tests {
    use talon_proto::host::{AuditStatus, Extension, PluginEventCounts, RefusedPlugin};

    use super::*;

    fn plugin(state: &str) -> Plugin {
        Plugin {
            name: "jira".to_owned(),
            state: state.to_owned(),
            breaker: "closed".to_owned(),
            ..Plugin::default()
        }
    }

    // Promises: CLI-24
    #[test]
    fn a_supervisor_that_is_well_needs_nobody() {
        let well = GetStatusResponse {
            plugins: ["ready", "stopped", "starting"].map(plugin).to_vec(),
            audit: Some(AuditStatus { state: "on".to_owned(), ..AuditStatus::default() }),
            state_service: Some(StateStatus { state: "serving".to_owned(), ..StateStatus::default() }),
            agent: Some(AgentStatus { state: "off".to_owned(), ..AgentStatus::default() }),
            ..GetStatusResponse::default()
        };
        assert_eq!(attention(&well), []);
    }

    // Promises: CLI-24
    #[test]
    fn whatever_is_wrong_says_what_to_do() {
        let mut held = plugin("ready");
        (held.quarantined, held.breaker) = (true, "open".to_owned());
        held.replacement_problem = "it exited with 3".to_owned();
        held.changed_actions = vec!["search".to_owned()];
        held.events =
            Some(PluginEventCounts { granted: true, waiting: true, ..PluginEventCounts::default() });
        let wrong = GetStatusResponse {
            plugins: vec![plugin("failed"), plugin("backoff"), held],
            config_problem: "line 3: no such key".to_owned(),
            audit: Some(AuditStatus { state: "failing".to_owned(), lost: 2, ..AuditStatus::default() }),
            state_service: Some(StateStatus { state: "backoff".to_owned(), ..StateStatus::default() }),
            agent: Some(AgentStatus {
                state: "backoff".to_owned(),
                problems: vec!["it ended: `talon-agent` was killed".to_owned()],
                ..AgentStatus::default()
            }),
            extensions: ["failing", "ready", "waiting"]
                .map(|state| Extension {
                    role: "request_hook".to_owned(),
                    name: "pii.scan".to_owned(),
                    state: state.to_owned(),
                    reason: "why".to_owned(),
                    ..Extension::default()
                })
                .to_vec(),
            refused: vec![RefusedPlugin {
                name: "twin".to_owned(),
                path: "/p/twin".to_owned(),
                reason: "the same name; rename one".to_owned(),
            }],
            ..GetStatusResponse::default()
        };
        for (state, word) in [("full", "`state.max_bytes`"), ("unresponsive", "`talon event list`")] {
            let state =
                StateStatus { state: state.to_owned(), problem: "why".to_owned(), ..StateStatus::default() };
            let status = GetStatusResponse { state_service: Some(state), ..GetStatusResponse::default() };
            let items = attention(&status);
            let [item] = items.as_slice() else { panic!("{items:#?}") };
            assert!(item.message.contains("why") && item.message.contains(word), "{item:?}");
        }
        let items = attention(&wrong);
        assert_eq!(items.len(), 15, "{items:#?}");
        for AttentionItem { subject: who, message: says } in items {
            let next =
                says.contains('`') || says.contains("docs/") || says.contains("audit.wait") || who == "twin";
            assert!(next, "{who}: {says}");
        }
    }
}
