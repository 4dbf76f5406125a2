//! From the command line to the control socket.

use std::future::Future;
use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use rustix::net::{SocketType, sockopt};

use crate::end::End;
use crate::log;

/// How a program that was called wrongly ends.
const USAGE: u8 = 2;
/// What threads of the store may take to end once the store is closed.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// Which program it is.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// As its file is called.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What `--help` prints.
    pub help: &'static str,
    /// Short names of the log's filter, each with the targets that it stands for.
    pub targets: &'static [(&'static str, &'static [&'static str])],
}

/// A child's whole `main`: it takes no arguments but `--help` and `--version`, and runs on what its starter gave it.
pub fn begin<F: Future<Output = End>>(program: Program, run: impl FnOnce(OwnedFd) -> F) -> ExitCode {
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
    let Some(control) = control() else {
        return misused("its standard input is no control socket");
    };
    log::begin(targets);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "threads cannot be started; see whether the process limit (ulimit -u) is reached");
            return ExitCode::FAILURE;
        }
    };
    let end = runtime.block_on(run(control));
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
