//! The facts about one plugin, one a row.

use anstyle::Style;
use talon_proto::host::{Plugin, PluginCounters, Settings};

use crate::show;
use crate::table::{Cell, Table};

/// Adds a row.
type Row<'t> = dyn FnMut(&str, Cell) + 't;

/// `settings` is `None` for users who may not see them.
pub(super) fn table(plugin: &Plugin, settings: Option<&Settings>, description: &str) -> Table {
    let mut table = Table::new(&[]);
    let row: &mut Row<'_> = &mut |key, value| table.row(vec![key.into(), value]);
    identity(plugin, description, row);
    if let Some(settings) = settings {
        configuration(plugin, settings, row);
    }
    let counters = plugin.counters.clone().unwrap_or_default();
    calls(plugin, &counters, row);
    refusals(plugin, settings, row);
    log(&counters, row);
    for text in &plugin.not_enforced {
        row("not enforced", text.as_str().into());
    }
    table
}

fn identity(plugin: &Plugin, description: &str, row: &mut Row<'_>) {
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
}

fn configuration(plugin: &Plugin, settings: &Settings, row: &mut Row<'_>) {
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

/// What became of its calls.
fn calls(plugin: &Plugin, counters: &PluginCounters, row: &mut Row<'_>) {
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
    for (family, count) in &counters.neutralised {
        row("neutralized", format!("{family}: {count}").into());
    }
    for (flag, count) in &counters.flagged {
        row("noticed", format!("text in {flag}: {count}").into());
    }
    if counters.tainted > 0 {
        row("tainted", format!("{} calls brought what a plugin had answered", counters.tainted).into());
    }
}

/// Why calls are refused.
fn refusals(plugin: &Plugin, settings: Option<&Settings>, row: &mut Row<'_>) {
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
}

fn log(counters: &PluginCounters, row: &mut Row<'_>) {
    let lost = match counters.log_lines_dropped {
        0 => String::new(),
        dropped => format!(", {dropped} of them dropped: it logs more than it may"),
    };
    row("log", format!("{} lines{lost}", counters.log_lines).into());
}
