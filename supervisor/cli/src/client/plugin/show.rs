//! `talon plugin show`.

use std::time::{Duration, SystemTime};

use anstyle::Style;
use clap::Args;
use talon_proto::host::{GetPluginRequest, GetPluginResponse, Plugin, Settings};
use talon_proto::plugin::{Action, PluginCapabilities};
use talon_sanitize::{Raw, inert};

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::table::{Cell, Table};
use crate::{json, show};

/// Show one plugin in full: its state, instances, settings and actions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon plugin show hello
  talon plugin show hello --output json | jq '.capabilities.actions[].name'")]
pub(crate) struct ShowArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

impl ShowArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let response = client.host.get_plugin(GetPluginRequest { name: self.name, for_model: false }).await;
        let response = response.map_err(|status| client.failure(&status))?.into_inner();
        if out.is_json() {
            out.json(&json::plugin_details(&response));
        } else {
            print(&response, out);
        }
        Ok(exit::OK)
    }
}

fn print(response: &GetPluginResponse, out: &mut Output) {
    if let Some(plugin) = &response.plugin {
        let description = response.capabilities.as_ref().map_or("", |capabilities| &capabilities.description);
        facts(plugin, response.settings.as_ref(), description, out);
        instances(plugin, out);
    }
    if let Some(capabilities) = &response.capabilities
        && response.plugin.as_ref().is_some_and(|plugin| plugin.changed_texts)
    {
        out.line("");
        texts(capabilities, out);
    }
    if let Some(capabilities) = &response.capabilities
        && !capabilities.actions.is_empty()
    {
        out.line("");
        let changed = response.plugin.as_ref().map_or(&[][..], |plugin| &plugin.changed_actions);
        actions(capabilities, changed, out);
    }
}

fn facts(plugin: &Plugin, settings: Option<&Settings>, description: &str, out: &mut Output) {
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
        // Not every user gets these.
        for (key, value) in
            [("command", &settings.command), ("from", &settings.source), ("sha256", &settings.sha256)]
        {
            if !value.is_empty() {
                row(key, value.as_str().into());
            }
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
        let timeout = talon_plugin_config::units::Duration::from_millis(settings.timeout_ms);
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
        row("neutralized", format!("{family}: {count}").into());
    }
    let mut flags: Vec<_> = counters.flagged.iter().collect();
    flags.sort();
    for (flag, count) in flags {
        row("noticed", format!("text in {flag}: {count}").into());
    }
    if counters.tainted > 0 {
        row("tainted", format!("{} calls brought what a plugin had answered", counters.tainted).into());
    }
    if let Some(text) = show::changed(plugin) {
        let refused = settings.is_some_and(|settings| settings.changed_tools == "block");
        let then = if refused { ", and refused until then" } else { "" };
        row("changed", format!("{text}{then}").into());
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

fn instances(plugin: &Plugin, out: &mut Output) {
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

/// Bytes of a changed action's schema, and of each changed text, in the output for people. A longer one is marked, and
/// complete with `--output json`.
const MAX_TEXT_SHOWN: usize = 2 << 10;
/// How many context arguments of a changed action are listed; the others are counted.
const MAX_CONTEXT_SHOWN: usize = 32;

/// A schema or a plugin's text in a table, cut to the limit.
fn bounded(text: &str) -> Cell {
    let start = Raw::from(text).line_within(MAX_TEXT_SHOWN);
    match text.len() {
        ..=MAX_TEXT_SHOWN => start.into(),
        len => inert!("{} ({} bytes in all: see `--output json` of `talon plugin show`)", start, len).into(),
    }
}

/// The actions with their parameters, for `plugin show` and `exec --list`; actions that differ from what was approved
/// are marked and shown in full.
pub(crate) fn actions(capabilities: &PluginCapabilities, changed: &[String], out: &mut Output) {
    let mut table = Table::new(&["ACTION", "TYPE", "", "DESCRIPTION"]);
    for action in &capabilities.actions {
        let is_changed = changed.contains(&action.name);
        let more = |table: &mut Table, what: &str, value: Cell| {
            table.row(vec![what.into(), "".into(), "".into(), value]);
        };
        table.row(vec![
            Cell::styled(action.name.as_str(), Style::new().bold()),
            "".into(),
            flags(action, is_changed).into(),
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
            if is_changed && !parameter.schema.is_empty() {
                more(&mut table, "    (schema)", bounded(&parameter.schema));
            }
        }
        if is_changed && !action.output_schema.is_empty() {
            more(&mut table, "  (output schema)", bounded(&action.output_schema));
        }
        if is_changed && !action.inject_context_args.is_empty() {
            more(&mut table, "  (context)", context(&action.inject_context_args));
        }
    }
    if !table.is_empty() {
        out.table(&table);
    }
}

/// How many glossary entries and articles are listed for a plugin whose texts changed; the others are counted.
const MAX_ENTRIES_SHOWN: usize = 32;

/// The plugin's description of itself, if it differs from what was approved.
pub(super) fn texts(said: &PluginCapabilities, out: &mut Output) {
    let mut table = Table::new(&["ITS OWN TEXTS", "CHANGED"]);
    for (what, text) in
        [("description", &said.description), ("system prompt addition", &said.system_prompt_addition)]
    {
        if !text.is_empty() {
            table.row(vec![what.into(), bounded(text)]);
        }
    }
    for entry in said.glossary.iter().take(MAX_ENTRIES_SHOWN) {
        table.row(vec!["glossary".into(), bounded(&format!("{}: {}", entry.term, entry.definition))]);
    }
    for article in said.knowledge_articles.iter().take(MAX_ENTRIES_SHOWN) {
        table.row(vec!["article".into(), bounded(&format!("{}: {}", article.title, article.content))]);
    }
    let more = |count: usize| count.saturating_sub(MAX_ENTRIES_SHOWN);
    let left_out = more(said.glossary.len()) + more(said.knowledge_articles.len());
    if left_out > 0 {
        table.row(vec!["".into(), format!("and {left_out} more: see `--output json`").into()]);
    }
    out.table(&table);
}

/// Context arguments in a table cell.
fn context(names: &[String]) -> Cell {
    let shown = names.iter().take(MAX_CONTEXT_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_CONTEXT_SHOWN) {
        0 => shown.into(),
        more => format!("{shown} and {more} more").into(),
    }
}

fn flags(action: &Action, changed: bool) -> String {
    let mut flags = Vec::new();
    if changed {
        flags.push("changed");
    }
    if action.user_only {
        flags.push("user only");
    }
    if action.read_only {
        flags.push("read only");
    }
    if action.destructive == Some(true) {
        flags.push("destructive");
    }
    flags.join(", ")
}
