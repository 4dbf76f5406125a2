//! `talon state list`.

use clap::Args;
use indicatif::HumanBytes;
use serde_json::{Value, json};
use talon_proto::state::{EntrySize, ListEntriesRequest, ListPluginsRequest, PluginUsage};
use talon_sanitize::sanitized;

use super::access::{Purpose, StateAccess};
use super::name;
use super::operator::Operator;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show::counted;
use crate::table::Table;

/// Entries per request; the service may return fewer.
const PAGE_SIZE: u32 = 500;
/// The most entries to list. A plugin's default quota allows a tenth of this; for more there is --prefix, and
/// for plugins their names.
const MAX_ROWS: usize = 1_000_000;

/// List the plugins that have stored state, or the keys of one plugin.
///
/// A removed plugin is listed until its state is purged.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon state list
  talon state list notes
  talon state list notes --prefix draft/ --output json | jq -r '.entries[].key'"
)]
pub(crate) struct ListArgs {
    /// List the keys of this plugin, with the sizes of their values.
    #[arg(value_name = "PLUGIN")]
    plugin: Option<String>,
    /// Only keys with this prefix.
    #[arg(long, value_name = "PREFIX", requires = "plugin")]
    prefix: Option<String>,
}

impl ListArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let plugin = self.plugin.as_deref().map(name::plugin).transpose()?;
        let mut operator = StateAccess::find(global).await?.plugins(Purpose::Use).await?;
        match plugin {
            None => plugins(&mut operator, out).await?,
            Some(plugin) => entries(&mut operator, plugin, self.prefix.unwrap_or_default(), out).await?,
        }
        Ok(exit::OK)
    }
}

async fn plugins(operator: &mut Operator, out: &mut Output) -> Result<(), Failure> {
    let mut plugins: Vec<PluginUsage> = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListPluginsRequest { page_token, page_size: PAGE_SIZE };
        let page = operator.client.list_plugins(request).await;
        let page = page.map_err(|status| operator.failure(&status))?.into_inner();
        plugins.extend(page.plugins);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
        bounded(plugins.len(), "plugins: list the keys of one with `talon state list PLUGIN`")?;
    }
    if out.is_json() {
        out.json(&json!({ "plugins": plugins.iter().map(usage).collect::<Value>() }));
        return Ok(());
    }
    if plugins.is_empty() {
        out.line("no plugin keeps anything");
        return Ok(());
    }
    let mut table = Table::new(&["PLUGIN", "KEYS", "BYTES", "SIZE"]);
    for plugin in plugins {
        let size = HumanBytes(plugin.bytes).to_string();
        table.row(vec![plugin.plugin.into(), plugin.keys.into(), plugin.bytes.into(), size.into()]);
    }
    out.table(&table);
    Ok(())
}

async fn entries(
    operator: &mut Operator,
    plugin: String,
    prefix: String,
    out: &mut Output,
) -> Result<(), Failure> {
    let mut entries: Vec<EntrySize> = Vec::new();
    let mut page_token = String::new();
    let whole = loop {
        let request = ListEntriesRequest {
            plugin: plugin.clone(),
            prefix: prefix.clone(),
            page_token,
            page_size: PAGE_SIZE,
        };
        let page = operator.client.list_entries(request).await;
        let page = page.map_err(|status| operator.failure(&status))?.into_inner();
        entries.extend(page.entries);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break page.usage.unwrap_or_default();
        }
        bounded(entries.len(), "keys: list a part of them with --prefix")?;
    };
    if out.is_json() {
        let entry = |entry: &EntrySize| json!({ "key": entry.key, "bytes": entry.value_bytes });
        out.json(&json!({
            "plugin": plugin,
            "keys": whole.keys,
            "bytes": whole.bytes,
            "entries": entries.iter().map(entry).collect::<Value>(),
        }));
        return Ok(());
    }
    if entries.is_empty() {
        let what = if whole.keys == 0 { "keeps nothing" } else { "has no key that begins so" };
        out.line(sanitized!("{} {}", sanitized_line(plugin), what));
        return Ok(());
    }
    let mut table = Table::new(&["KEY", "BYTES"]);
    let listed = entries.len();
    for entry in entries {
        table.row(vec![entry.key.into(), entry.value_bytes.into()]);
    }
    out.table(&table);
    out.line("");
    let size = sanitized_line(HumanBytes(whole.bytes));
    let keys = sanitized_line(counted(whole.keys, "key"));
    out.line(sanitized!("{} of {}; {} in all, keys included", listed, keys, size));
    Ok(())
}

fn bounded(rows: usize, instead: &str) -> Result<(), Failure> {
    if rows < MAX_ROWS {
        return Ok(());
    }
    Err(Failure::new(exit::REFUSED, format!("there are more than {MAX_ROWS} {instead}")))
}

fn usage(usage: &PluginUsage) -> Value {
    json!({ "plugin": usage.plugin, "keys": usage.keys, "bytes": usage.bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_too_long_says_what_else_there_is() {
        bounded(MAX_ROWS - 1, "").unwrap();
        let failure = bounded(MAX_ROWS, "plugins: name one").unwrap_err();
        assert_eq!(failure.code(), exit::REFUSED);
        assert_eq!(failure.to_string(), "there are more than 1000000 plugins: name one");
    }
}
