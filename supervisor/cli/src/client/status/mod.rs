//! `talon status`: the supervisor and its plugins on one screen.

mod attention;
mod facts;
mod plugins;
mod roles;

use std::collections::BTreeMap;

use anstyle::Style;
use clap::Args;
use talon_plugin_config::status_summary::{self, PluginStatus};
use talon_proto::host::{GetStatusRequest, GetStatusResponse, Plugin, RefusedPlugin};
use talon_sanitize::sanitized;

use self::attention::attention;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::line::{Line, sanitized_line};
use crate::output::Output;
use crate::table::Table;
use crate::wrap::wrapped_on;
use crate::{json, script_table, show};

/// Show the supervisor's state, its plugins (the worst first), what needs attention, and which protections
/// are missing.
///
/// The first line is a summary. With --check the exit code reflects it: 1 if something needs attention, that
/// is, if that list is not empty.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon status
  talon status --check >/dev/null || echo look at it
  talon status --output json | jq '.plugins[] | select(.state != \"ready\")'")]
pub(crate) struct StatusArgs {
    /// Exit with 1 if something needs attention.
    #[arg(long)]
    check: bool,
}

impl StatusArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let response =
            client.host.get_status(GetStatusRequest {}).await.map_err(|status| client.failure(&status))?;
        let status = response.get_ref();
        let attention = attention(status);
        if out.is_json() {
            let mut value = json::status(status);
            value["attention"] = attention.iter().map(attention::AttentionItem::json).collect();
            out.json(&value);
        } else {
            print(status, &attention, out);
        }
        Ok(if self.check && !attention.is_empty() { exit::TOOL_ERROR } else { exit::OK })
    }
}

fn one(plugin: &Plugin) -> PluginStatus<'_> {
    PluginStatus { name: &plugin.name, state: &plugin.state, reason: &plugin.reason }
}

/// A refused plugin file counts as a failed plugin.
fn refused(refused: &RefusedPlugin) -> PluginStatus<'_> {
    PluginStatus { name: &refused.name, state: "refused", reason: &refused.reason }
}

fn print(status: &GetStatusResponse, attention: &[attention::AttentionItem], out: &mut Output) {
    let refused = status.refused.iter().map(refused);
    let sentence = status_summary::summarize(status.plugins.iter().map(one).chain(refused));
    let state = sanitized_line(&status.state);
    out.line(match show::state_style(&status.state) {
        Some(style) => Line::styled(style, state).and(sanitized!(": {}", sentence)),
        None => Line::from(sanitized!("{}: {}", state, sentence)),
    });
    out.line("");
    out.table(&facts::table(status));
    if !status.plugins.is_empty() {
        out.line("");
        let mut table = plugins::table(&status.plugins);
        table.fit(out.columns());
        out.table(&table);
    }
    if let Some(mut scripts) = script_table::table(&status.plugins) {
        scripts.fit(out.columns());
        out.line("");
        out.table(&scripts);
    }
    if let Some(mut roles) = roles::table(&status.plugin_roles) {
        roles.fit(out.columns());
        out.line("");
        out.table(&roles);
    }
    items("NEEDS ATTENTION", attention, out);
    items("TO KNOW", &attention::notes(status), out);
    not_enforced(status, out);
}

fn items(title: &'static str, items: &[attention::AttentionItem], out: &mut Output) {
    if items.is_empty() {
        return;
    }
    let mut table = Table::new(&[]);
    let used = items.iter().map(|item| item.subject.len()).max().unwrap_or_default() + 2;
    for item in items {
        let mut who = Some(item.subject.as_str());
        for line in wrapped_on(out.columns(), &item.message, used) {
            table.row(vec![who.take().unwrap_or_default().into(), line.into()]);
        }
    }
    out.line("");
    out.line(Line::styled(Style::new().bold(), title));
    out.table(&table);
}

/// The widest list of names next to a text; more plugins are counted, and `talon plugin show` has the
/// details.
const MAX_NAMES_COLUMNS: usize = 24;

/// Missing protections come last, where they are noticed; plugins with the same ones share a line.
fn not_enforced(status: &GetStatusResponse, out: &mut Output) {
    let mut lacking: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for plugin in &status.plugins {
        for text in &plugin.not_enforced {
            lacking.entry(text).or_default().push(&plugin.name);
        }
    }
    let word = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let told: Vec<String> = lacking.keys().map(|text| word(text)).collect();
    let mut rows: Vec<(String, &str)> = Vec::new();
    for text in status.not_enforced.iter().filter(|text| !told.contains(&word(text))) {
        rows.push(("any plugin".to_owned(), text));
    }
    for (text, plugins) in lacking {
        let whom = if plugins.len() == status.plugins.len() {
            "every plugin".to_owned()
        } else {
            let names = plugins.join(", ");
            if names.len() > MAX_NAMES_COLUMNS { format!("{} plugins", plugins.len()) } else { names }
        };
        rows.push((whom, text));
    }
    if rows.is_empty() {
        return;
    }
    let used = rows.iter().map(|(whom, _)| whom.len()).max().unwrap_or_default() + 2;
    let mut table = Table::new(&["FOR", "NOT ENFORCED"]);
    for (whom, text) in rows {
        let mut whom = Some(whom);
        for line in wrapped_on(out.columns(), text, used) {
            table.row(vec![whom.take().unwrap_or_default().into(), line.into()]);
        }
    }
    out.line("");
    out.table(&table);
}
