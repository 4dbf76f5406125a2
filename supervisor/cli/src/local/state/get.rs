//! `talon state get`.

use clap::Args;
use serde_json::json;
use talon_proto::state::GetEntryRequest;
use talon_sanitize::{Raw, sanitized};

use super::access::{Purpose, StateAccess};
use super::name;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show::counted;

/// Show the value of a key.
///
/// Control and invisible characters are made visible and control syntax is marked, since a plugin may have
/// stored anything; --raw writes the unchanged bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon state get notes draft/1
  talon state get notes draft/1 --raw > draft.txt")]
pub(crate) struct GetArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// The key.
    #[arg(value_name = "KEY")]
    key: String,
    /// Write the value itself to stdout, byte by byte.
    #[arg(long, conflicts_with = "output")]
    raw: bool,
}

impl GetArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let plugin = name::plugin(&self.plugin)?;
        let mut operator = StateAccess::find(global).await?.plugins(Purpose::Use).await?;
        let request = GetEntryRequest { plugin: plugin.clone(), key: self.key.clone() };
        let response = operator.client.get_entry(request).await;
        let response = response.map_err(|status| operator.failure(&status))?.into_inner();
        let Some(value) = response.value else {
            return Err(name::no_such_key(&plugin, &self.key));
        };
        if self.raw {
            out.raw_bytes(&value)?;
            return Ok(exit::OK);
        }
        let text = std::str::from_utf8(&value).ok();
        if out.is_json() {
            out.json(&json!({ "plugin": plugin, "key": self.key, "bytes": value.len(), "text": text }));
            return Ok(exit::OK);
        }
        match text {
            Some(text) => out.text(&Raw::from(text).text()),
            None => {
                let bytes = sanitized_line(counted(value.len() as u64, "byte"));
                out.line(sanitized!("no text: {}; --raw writes them", bytes));
            }
        }
        Ok(exit::OK)
    }
}
