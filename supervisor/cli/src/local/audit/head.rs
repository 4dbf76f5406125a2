//! `talon audit head`: the last record's hash, which covers the whole log.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use talon_sanitize::sanitized;

use super::find;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::output::Output;

/// Print the number and the hash of the last record.
///
/// The hash covers everything before it. Store it where writers of the log cannot change it: then
/// `talon audit verify --anchor` shows whether all of these records are still there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon audit head
  talon audit head | logger --server log.example.org")]
pub(crate) struct HeadArgs {
    /// The log's directory; otherwise the supervisor's.
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl HeadArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let found = find::resolve_paths(self.dir.into_iter().collect(), global).await?;
        let head = talon_audit::head(&found[0]).map_err(|error| Failure::failed(error.to_string()))?;
        if out.is_json() {
            out.json(&json!({
                "seq": head.seq,
                "hash": head.hash.to_string(),
                "unix_ms": head.unix_ms,
                "file": head.file.display().to_string(),
            }));
        } else {
            out.line(sanitized!("{}:{}", head.seq, sanitized_line(head.hash)));
        }
        Ok(exit::OK)
    }
}
