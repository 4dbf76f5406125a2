//! `talon plugin show`.

use std::time::{Duration, SystemTime};

use anstyle::Style;
use clap::Args;
use talon_proto::host::{GetPluginRequest, GetPluginResponse, Plugin, Settings};
use talon_proto::plugin::{Action, PluginCapabilities};

use super::super::client::Client;
use super::super::failure::Failure;
use super::super::output::Out;
use super::super::table::{Cell, Table};
use super::super::{Global, json, show};
use crate::exit;

/// Show one plugin whole: its state, instances, settings and actions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon plugin show hello
  talon plugin show hello --output json | jq '.capabilities.actions[].name'")]
pub(in crate::cli) struct ShowArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

impl ShowArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        let mut client = Client::connect(global).await?;
        let response = client.host.get_plugin(GetPluginRequest { name: self.name }).await;
        let response = response.map_err(|status| client.failure(&status))?.into_inner();
        if out.is_json() {
            out.json(&json::shown(&response));
        } else {
            print(&response, out);
        }
        Ok(exit::OK)
    }
}

fn print(response: &GetPluginResponse, out: &mut Out) {
    if let Some(plugin) = &response.plugin {
        let description = response.capabilities.as_ref().map_or("", |capabilities| &capabilities.description);
        facts(plugin, response.settings.as_ref(), description, out);
        instances(plugin, out);
    }
    if let Some(capabilities) = &response.capabilities
        && !capabilities.actions.is_empty()
    {
        out.line("");
        actions(capabilities, out);
    }
}

fn facts(plugin: &Plugin, settings: Option<&Settings>, description: &str, out: &mut Out) {
    let mut table = Table::new(&[]);
    let mut row = |key: &str, value: Cell| table.row(vec![key.into(), value]);
    row("plugin", Cell::styled(plugin.name.as_str(), Style::new().bold()));
    if !description.is_empty() {
        row("description", description.into());
    }
    row("state", show::state(&plugin.state, &plugin.desired));
    if !plugin.reason.is_empty() {
        row("reason", plugin.reason.as_str().into());
    }
    if !plugin.declared_name.is_empty() && plugin.declared_name != plugin.name {
        row("calls itself", plugin.declared_name.as_str().into());
    }
    if let Some(settings) = settings {
        row("command", settings.command.as_str().into());
        row("from", settings.source.as_str().into());
        if !settings.sha256.is_empty() {
            row("sha256", settings.sha256.as_str().into());
        }
        row("dialect", settings.dialect.as_str().into());
        let jail = match settings.sandbox_mode.as_str() {
            "off" => "off: it runs without one".to_owned(),
            mode => {
                format!("{mode}, profile {}, network {}", settings.sandbox_profile, settings.sandbox_network)
            }
        };
        row("jail", jail.into());
        for grant in &settings.sandbox_grants {
            row("granted", grant.as_str().into());
        }
        let timeout = crate::units::Duration::from_millis(settings.timeout_ms);
        row("timeout", timeout.into());
        row("answers up to", format!("{} bytes", settings.max_response_bytes).into());
        let deaths = match (settings.restart_on_failure, settings.max_restarts) {
            (false, _) => format!("{}; restart_on_failure is off", plugin.deaths),
            (true, max) => {
                format!("{} within the window, in which {max} restarts are allowed", plugin.deaths)
            }
        };
        row("deaths", deaths.into());
    }
    let counters = plugin.counters.clone().unwrap_or_default();
    row(
        "calls",
        format!(
            "{} ({} tool errors, {} refusals, {} faults, {} truncated), {} in flight, {} waiting",
            counters.calls,
            counters.tool_errors,
            counters.refusals,
            counters.faults,
            counters.truncated,
            plugin.calls_in_flight,
            plugin.calls_waiting
        )
        .into(),
    );
    let mut families: Vec<_> = counters.neutralised.iter().collect();
    families.sort();
    for (family, count) in families {
        row("made inert", format!("{family}: {count}").into());
    }
    let mut flags: Vec<_> = counters.flagged.iter().collect();
    flags.sort();
    for (flag, count) in flags {
        row("noticed", format!("text in {flag}: {count}").into());
    }
    if counters.tainted > 0 {
        row("tainted", format!("{} calls brought what a plugin had answered", counters.tainted).into());
    }
    if plugin.quarantined {
        row("quarantine", "calls are refused until it is started again".into());
    }
    if !plugin.breaker.is_empty() {
        row("breaker", plugin.breaker.as_str().into());
    }
    let lost = match counters.log_lines_dropped {
        0 => String::new(),
        dropped => format!(", {dropped} of them dropped: it logs more than it may"),
    };
    row("log", format!("{} lines{lost}", counters.log_lines).into());
    for text in &plugin.not_enforced {
        row("not enforced", text.as_str().into());
    }
    out.table(&table);
}

fn instances(plugin: &Plugin, out: &mut Out) {
    if plugin.instances.is_empty() {
        return;
    }
    let now = SystemTime::now();
    let mut table =
        Table::new(&["INSTANCE", "STATE", "PID", "UID", "GENERATION", "IN FLIGHT", "STARTED IN", "UP FOR"]);
    for instance in &plugin.instances {
        let started_in = match instance.start_to_ready_us {
            0 => String::new(),
            us => format!("{:.1} ms", Duration::from_micros(us).as_secs_f64() * 1000.0),
        };
        table.row(vec![
            instance.index.into(),
            show::state(&instance.state, ""),
            if instance.pid == 0 { "".into() } else { instance.pid.into() },
            if instance.pid == 0 { "".into() } else { instance.uid.into() },
            instance.generation.into(),
            instance.calls_in_flight.into(),
            started_in.into(),
            show::up_for(instance, now).map(show::short).unwrap_or_default().into(),
        ]);
    }
    out.line("");
    out.table(&table);
}

/// The actions with their parameters, for `plugin show` and `exec --list`.
pub(in crate::cli) fn actions(capabilities: &PluginCapabilities, out: &mut Out) {
    let mut table = Table::new(&["ACTION", "TYPE", "", "DESCRIPTION"]);
    for action in &capabilities.actions {
        table.row(vec![
            Cell::styled(action.name.as_str(), Style::new().bold()),
            "".into(),
            flags(action).into(),
            action.description.as_str().into(),
        ]);
        for parameter in &action.parameters {
            let kind = if parameter.r#type.is_empty() { "string" } else { &parameter.r#type };
            table.row(vec![
                format!("  {}", parameter.name).into(),
                kind.into(),
                if parameter.required { "required".into() } else { "".into() },
                parameter.description.as_str().into(),
            ]);
        }
    }
    if !table.is_empty() {
        out.table(&table);
    }
}

fn flags(action: &Action) -> String {
    let mut flags = Vec::new();
    if action.user_only {
        flags.push("user only");
    }
    if action.read_only {
        flags.push("read only");
    }
    flags.join(", ")
}
