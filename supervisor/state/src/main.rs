//! The `talon-state` binary.

use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use rustix::net::{SocketType, sockopt};
use talon_state::{End, log, run};

/// How a program that was called wrongly ends.
const USAGE: u8 = 2;
/// What threads of the store may take to end once the store is closed.
const LEFTOVERS: Duration = Duration::from_secs(1);

const HELP: &str = "\
talon-state keeps the state of plugins, sessions and memory for Talon.

It is started by talon, which gives it a control socket as its standard input; it is not started by hand.
To look into kept state, use:  talon state --help

Options:
  -h, --help     print this
  -V, --version  print the version

Environment:
  TALON_LOG      what is logged, as JSON lines on stderr: info (the default), talon_store=debug,info";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_ref().map(|argument| argument.to_str()) {
        None => {}
        Some(Some("--version" | "-V")) => {
            println!("talon-state {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(Some("--help" | "-h")) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(_) => return misused("it takes no arguments but --help and --version"),
    }
    let Some(control) = control() else {
        return misused("its standard input is no control socket");
    };
    log::begin();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "threads cannot be started; see whether the process limit (ulimit -u) is reached");
            return ExitCode::FAILURE;
        }
    };
    let end: End = runtime.block_on(run(control));
    runtime.shutdown_timeout(LEFTOVERS);
    ExitCode::from(end)
}

/// Standard input, if it is what talon gives us.
fn control() -> Option<OwnedFd> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() || sockopt::socket_type(stdin.as_fd()).ok()? != SocketType::SEQPACKET {
        return None;
    }
    stdin.as_fd().try_clone_to_owned().ok()
}

fn misused(why: &str) -> ExitCode {
    eprintln!("talon-state is started by talon, not by hand: {why}. See talon-state --help");
    ExitCode::from(USAGE)
}
