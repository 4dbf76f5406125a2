//! `talon top`: finds the supervisor and executes `talon-top`.

use std::io::{IsTerminal as _, stdin, stdout};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use talon_supervisor::program_lookup;

use crate::arguments::{ArgumentError, timeout};
use crate::client::connection::Client;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::runtime::block_on;

/// The program that draws the screen.
const PROGRAM: &str = "talon-top";
/// The sort keys of `talon-top`.
const ORDERS: [&str; 9] =
    ["worst", "name", "calls", "errors", "latency", "cpu", "memory", "in-flight", "log-lines"];

/// Show the supervisor and its plugins live: calls, errors, latencies, CPU and memory, the worst first.
///
/// Keys: ? shows the help, Enter shows one plugin in full, with its events and log lines, / filters, q quits.
/// After a restart of the supervisor it reconnects and says so. Rates are differences between two readings.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon top
  talon top --sort cpu --interval 5s
  talon top --once --output json | jq '.plugins[] | select(.rates.errors_per_second > 0) | .name'")]
pub(crate) struct TopArgs {
    /// How often to query the supervisor.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Only plugins whose name or state contains this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// The sort key.
    #[arg(long, value_name = "ORDER", default_value = ORDERS[0], value_parser = ORDERS)]
    sort: String,
    /// Print one snapshot, measured over one interval, and exit: for pipes and scripts.
    #[arg(long)]
    once: bool,
}

#[derive(Debug, thiserror::Error)]
enum IntervalError {
    #[error(transparent)]
    Duration(#[from] ArgumentError),
    #[error("use something from 100ms to 1h")]
    OutOfRange,
}

/// A sampling interval; very short ones would keep the supervisor busy.
fn interval(text: &str) -> Result<Duration, IntervalError> {
    let interval = timeout(text)?;
    if (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&interval) {
        Ok(interval)
    } else {
        Err(IntervalError::OutOfRange)
    }
}

impl TopArgs {
    pub(crate) fn run(self, socket: &HostSocket<'_>, global: &Global, out: &Output) -> Result<u8, Failure> {
        if !self.once && out.is_json() {
            return Err(Failure::usage("JSON is one picture, and not live: add --once"));
        }
        let on_terminal = stdin().is_terminal() && stdout().is_terminal();
        if !self.once && !on_terminal {
            return Err(Failure::usage("this is no terminal: add --once, which prints one picture"));
        }
        let program = program_lookup::find(PROGRAM).map_err(|error| Failure::failed(error.to_string()))?;
        // Connect here, so that a missing supervisor gives the same message and exit code as in every other
        // verb.
        let path = block_on(async { Ok(Client::connect(socket).await?.path().to_owned()) })?;
        let mut command = Command::new(program);
        command.arg("--socket").arg(path);
        command.arg("--interval-ms").arg(self.interval.as_millis().to_string());
        command.arg("--sort").arg(self.sort);
        if let Some(filter) = self.filter {
            command.arg("--filter").arg(filter);
        }
        if self.once {
            command.arg("--once");
        }
        if out.is_json() {
            command.arg("--json");
        }
        if !global.colors(&stdout()) {
            command.arg("--no-color");
        }
        // Replaces this process, so that keys and signals reach it directly.
        let error = command.exec();
        Err(Failure::failed(format!("cannot execute {PROGRAM}: {error}; install it beside talon again")))
    }
}
