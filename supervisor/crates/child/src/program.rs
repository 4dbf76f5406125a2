//! The main function of a child process.

use std::future::Future;
use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use rustix::net::{SocketType, sockopt};
use talon_log::filter::ShortName;

use crate::exit::ExitReason;
use crate::log;

/// The exit code of a wrong command line.
const USAGE: u8 = 2;
/// How long the store's threads may take to end once the store is closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A description of the program.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The name of its executable.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What `--help` prints.
    pub help: &'static str,
    /// Short names in the log's filter, each with its targets.
    pub targets: &'static [ShortName],
}

/// A child's whole `main`: it accepts no arguments but `--help` and `--version`, and is controlled over its
/// standard input.
pub fn run_program<F: Future<Output = ExitReason>>(
    program: Program,
    run: impl FnOnce(OwnedFd) -> F,
) -> ExitCode {
    // Until there is a log.
    talon_sanitize::print_panics_sanitized();
    let Program { name, version, help, targets } = program;
    let misused = |why: &str| {
        eprintln!("{name} is started by talon, not by hand: {why}. See {name} --help");
        ExitCode::from(USAGE)
    };
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_ref().map(|argument| argument.to_str()) {
        None => {}
        Some(Some("--version" | "-V")) => {
            println!("{name} {version}");
            return ExitCode::SUCCESS;
        }
        Some(Some("--help" | "-h")) => {
            println!("{help}");
            return ExitCode::SUCCESS;
        }
        Some(_) => return misused("it takes no arguments but --help and --version"),
    }
    let Some(control) = control_socket() else {
        return misused("its standard input is no control socket");
    };
    log::init(targets);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "threads cannot be started; see whether the process limit (ulimit -u) is reached");
            return ExitCode::FAILURE;
        }
    };
    let end = runtime.block_on(run(control));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    ExitCode::from(end)
}

/// Standard input, if it is a control socket.
fn control_socket() -> Option<OwnedFd> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() || sockopt::socket_type(stdin.as_fd()).ok()? != SocketType::SEQPACKET {
        return None;
    }
    stdin.as_fd().try_clone_to_owned().ok()
}
