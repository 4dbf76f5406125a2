//! `talon watch`: finds the agent's socket and executes `talon-watch`.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use talon_client::Agent;
use talon_supervisor::program_lookup;

use crate::failure::Failure;
use crate::host_socket::HostSocket;

/// The program that watches.
pub(crate) const PROGRAM: &str = "talon-watch";

/// Follow your files, shells and repositories, and report what detectors find to the agent.
///
/// Runs as you, until it is ended. Off until ~/.config/talon/watch.yaml says `shadow: { enabled: true }`, and then
/// only in the directories that it lists. It asks no model: the agent decides what becomes of an observation, and
/// `talon shadow` shows it. docs/shadow.md has all keys.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon watch --check
  talon watch --dry-run
  systemctl --user enable --now talon-watch")]
pub(crate) struct WatchArgs {
    /// The watcher's configuration [default: ~/.config/talon/watch.yaml].
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Print what would be sent, as a JSON object a line, and send nothing.
    #[arg(long)]
    dry_run: bool,
    /// Check the configuration, print what it watches and runs, and exit.
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
}

impl WatchArgs {
    pub(crate) fn run(self, socket: &HostSocket<'_>) -> Result<u8, Failure> {
        let program = program_lookup::find(PROGRAM).map_err(|error| Failure::failed(error.to_string()))?;
        let mut command = Command::new(program);
        if let Some(file) = self.file {
            command.arg("--config").arg(file);
        }
        if self.dry_run {
            command.arg("--dry-run");
        } else if self.check {
            command.arg("--check");
        } else {
            // The watcher waits for an agent that is not there yet.
            command.arg("--socket").arg(Agent::socket_beside(&socket.path()?));
        }
        // Replaces this process, so that signals reach it directly.
        let error = command.exec();
        Err(Failure::failed(format!("cannot execute {PROGRAM}: {error}; install it beside talon again")))
    }
}
