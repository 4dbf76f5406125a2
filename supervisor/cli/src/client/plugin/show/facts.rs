//! The facts about one plugin, one a row.

use anstyle::Style;
use talon_proto::host::{ModelGrant, Plugin, PluginCounters, Settings};
use talon_proto::plugin::{Action, PluginCapabilities};

use crate::show;
use crate::table::{Cell, Table};

/// Adds a row.
type Row<'t> = dyn FnMut(&str, Cell) + 't;

/// How many actions are named that get a value of the session; the others are counted.
const MAX_ACTIONS_NAMED: usize = 8;

/// `settings` is `None` for users who may not see them.
pub(super) fn table(
    plugin: &Plugin,
    settings: Option<&Settings>,
    capabilities: Option<&PluginCapabilities>,
    models_today: Option<&str>,
) -> Table {
    let mut table = Table::new(&[]);
    let row: &mut Row<'_> = &mut |key, value| table.row(vec![key.into(), value]);
    identity(plugin, capabilities.map_or("", |capabilities| &capabilities.description), row);
    if let Some(settings) = settings {
        configuration(plugin, settings, row);
        if let Some(used) = models_today {
            row("models today", used.into());
        }
        context(settings, capabilities.map_or(&[], |capabilities| &capabilities.actions), row);
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
    if let Some(models) = &settings.models {
        row("models", granted_models(models).into());
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

/// What it may ask of language models, on one line.
fn granted_models(grant: &ModelGrant) -> String {
    let aliases = grant.aliases.join(", ");
    let timeout = talon_plugin_config::units::Duration::from_millis(grant.timeout_ms);
    let of_call = format!(
        "{aliases}: {} a call, {} tokens each, within {timeout}, {} at once",
        grant.max_calls, grant.max_tokens, grant.concurrency
    );
    match (grant.own_calls_per_day, grant.own_micro_usd_per_day) {
        (Some(calls), Some(micro)) => {
            let cents = micro.div_ceil(10_000);
            format!("{of_call}; on its own account {calls} and ${}.{:02} a day", cents / 100, cents % 100)
        }
        _ => of_call,
    }
}

/// Which of its actions get what of a caller's session, and which ask for more than they are granted.
fn context(settings: &Settings, actions: &[Action], row: &mut Row<'_>) {
    let asking = |name: &String| -> Vec<&str> {
        let asking = actions.iter().filter(|action| action.inject_context_args.contains(name));
        asking.map(|action| action.name.as_str()).collect()
    };
    for name in &settings.context {
        let text = match asking(name) {
            actions if actions.is_empty() => format!("{name}: granted; no action asks for it"),
            actions => format!("{name}: given to {}", named(&actions)),
        };
        row("context", text.into());
    }
    let mut others: Vec<&String> = actions.iter().flat_map(|action| &action.inject_context_args).collect();
    others.sort();
    others.dedup();
    for name in others.into_iter().filter(|name| !settings.context.contains(name)) {
        let text =
            format!("{name}: asked for by {}; not granted (`context` of its entry)", named(&asking(name)));
        row("context", text.into());
    }
}

fn named(actions: &[&str]) -> String {
    let shown = actions[..actions.len().min(MAX_ACTIONS_NAMED)].join(", ");
    match actions.len().saturating_sub(MAX_ACTIONS_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
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
