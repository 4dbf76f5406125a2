//! `talon state purge`.

use clap::Args;
use indicatif::HumanBytes;
use serde_json::json;
use talon_proto::state::{ListEntriesRequest, PluginUsage, PurgeRequest};
use talon_sanitize::sanitized;

use super::access::{Purpose, StateAccess};
use super::name;
use super::operator::Operator;
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show::counted;

/// Delete everything that a plugin has stored.
///
/// The state of a removed plugin stays until it is purged. Only a backup can undo this.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon state purge notes
  talon state purge notes --yes")]
pub(crate) struct PurgeArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// Do not ask for confirmation. Required without a terminal.
    #[arg(long)]
    yes: bool,
}

impl PurgeArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let plugin = name::plugin(&self.plugin)?;
        let mut operator = StateAccess::find(global).await?.plugins(Purpose::Use).await?;
        let kept = usage(&mut operator, &plugin).await?;
        if kept.keys == 0 {
            let text = format!("{plugin} keeps nothing: `talon state list` lists the plugins that do");
            return Err(Failure::new(exit::REFUSED, text));
        }
        if !self.yes && !is_confirmed(&plugin, &kept, out)? {
            out.err_line("nothing was changed");
            return Ok(exit::OK);
        }
        let response = operator.client.purge(PurgeRequest { plugin: plugin.clone() }).await;
        let response = response.map_err(|status| operator.failure(&status))?.into_inner();
        let purged = response.purged.unwrap_or_default();
        if out.is_json() {
            out.json(&json!({ "plugin": plugin, "keys": purged.keys, "bytes": purged.bytes }));
        } else {
            out.line(sanitized!("purged {}: {}", sanitized_line(plugin), sanitized_line(amount(&purged))));
        }
        Ok(exit::OK)
    }
}

async fn usage(operator: &mut Operator, plugin: &str) -> Result<PluginUsage, Failure> {
    let request =
        ListEntriesRequest { plugin: plugin.to_owned(), page_size: 1, ..ListEntriesRequest::default() };
    let response = operator.client.list_entries(request).await;
    let response = response.map_err(|status| operator.failure(&status))?.into_inner();
    Ok(response.usage.unwrap_or_default())
}

fn amount(usage: &PluginUsage) -> String {
    format!("{}, {}", counted(usage.keys, "key"), HumanBytes(usage.bytes))
}

fn is_confirmed(plugin: &str, kept: &PluginUsage, out: &mut Output) -> Result<bool, Failure> {
    let amount = amount(kept);
    if !confirm::is_interactive() {
        let text =
            format!("this would forget all state of {plugin} ({amount}) for ever: say --yes if it should");
        return Err(Failure::usage(text));
    }
    confirm::is_confirmed(
        sanitized!("Forget all state of {} ({}) for ever?", sanitized_line(plugin), sanitized_line(amount)),
        out,
    )
}
