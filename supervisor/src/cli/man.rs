//! `talon man`: man pages, one for each verb.

use std::path::PathBuf;

use clap::Args;
use talon_sanitize::inert;

use super::failure::Failure;
use super::output::{Output, sanitized_line};
use crate::exit;

/// Write the man pages of talon and of each of its verbs into a directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon man /usr/local/share/man/man1")]
pub(super) struct ManArgs {
    /// The target directory; created if it does not exist.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl ManArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let dir = self.dir.display();
        std::fs::create_dir_all(&self.dir)
            .and_then(|()| clap_mangen::generate_to(super::command(), &self.dir))
            .map_err(|error| Failure::failed(format!("cannot write man pages into {dir}: {error}")))?;
        if out.is_json() {
            out.json(&serde_json::json!({ "dir": dir.to_string() }));
        } else {
            out.line(inert!("man pages written to {}", sanitized_line(dir)));
        }
        Ok(exit::OK)
    }
}
