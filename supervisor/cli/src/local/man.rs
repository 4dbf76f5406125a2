//! `talon man`: man pages, one for each verb.

use std::path::PathBuf;

use clap::{Args, Command};
use talon_sanitize::sanitized;

use crate::exit;
use crate::failure::Failure;
use crate::line::sanitized_line;
use crate::output::Output;

/// Write the man pages of talon and of each of its verbs into a directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The target directory; created if it does not exist.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl ManArgs {
    pub(crate) fn run(self, command: Command, out: &mut Output) -> Result<u8, Failure> {
        let dir = self.dir.display();
        std::fs::create_dir_all(&self.dir)
            .and_then(|()| clap_mangen::generate_to(command, &self.dir))
            .map_err(|error| Failure::failed(format!("cannot write man pages into {dir}: {error}")))?;
        if out.is_json() {
            out.json(&serde_json::json!({ "dir": dir.to_string() }));
        } else {
            out.line(sanitized!("man pages written to {}", sanitized_line(dir)));
        }
        Ok(exit::OK)
    }
}
