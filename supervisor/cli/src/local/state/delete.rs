//! `talon state delete`.

use clap::Args;
use serde_json::json;
use talon_proto::state::DeleteEntryRequest;
use talon_sanitize::sanitized;

use super::access::{Purpose, StateAccess};
use super::name;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::output::Output;

/// Delete a key and its value.
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:
  talon state delete notes draft/1"
)]
pub(crate) struct DeleteArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// The key.
    #[arg(value_name = "KEY")]
    key: String,
}

impl DeleteArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let plugin = name::plugin(&self.plugin)?;
        let mut operator = StateAccess::find(global).await?.plugins(Purpose::Use).await?;
        let request = DeleteEntryRequest { plugin: plugin.clone(), key: self.key.clone() };
        let response = operator.client.delete_entry(request).await;
        let existed = response.map_err(|status| operator.failure(&status))?.into_inner().existed;
        if !existed {
            return Err(name::no_such_key(&plugin, &self.key));
        }
        if out.is_json() {
            out.json(&json!({ "plugin": plugin, "key": self.key, "deleted": true }));
        } else {
            out.line(sanitized!("deleted {} of {}", name::key(&self.key), sanitized_line(plugin)));
        }
        Ok(exit::OK)
    }
}
