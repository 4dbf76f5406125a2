//! Translates for the oldest OpenTalon plugins, those of v0.0.1, which use length-prefixed JSON instead of
//! gRPC.
//!
//! ```text
//! host ── gRPC (our SDK) ── talon-framed-bridge ── 4-byte length + JSON, a unix socket ── PROGRAM
//! ```
//!
//! It is a plugin: it runs in the plugin's jail with the plugin's rights, and starts the plugin's program as
//! its child. When the program ends, the bridge ends and the host restarts both; when the host stops the
//! bridge, it ends the program.

mod exchange;
mod frame;
mod handshake;
mod message;
mod tools;

use std::cell::Cell;
use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::Signal;
use talon_bridge::logging;
use talon_bridge::process::{EndStep, report_exit};
use talon_bridge::program;
use talon_bridge::stop_signals::StopSignals;
use talon_sdk::{DEFAULT_GRACE, Plugin, ServeError};
use tokio::time::{sleep, timeout};

use crate::exchange::Exchange;
use crate::handshake::HandshakeLineError;
use crate::tools::CapabilitiesError;

/// The exit code for a wrong command line.
const USAGE: u8 = 2;
/// How long the program may take to print its handshake line, and then to declare its capabilities, as in
/// later hosts. A supervisor's start_timeout usually passes first, and its error names the step.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);
const CAPABILITIES_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the exit of the program may take to be noticed.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_millis(200);

/// How it is ended: as in its original host, by SIGINT, to its whole group, since a shell in front of the program
/// would not pass it on. Then it is killed.
const STOP_GRACE: Duration = Duration::from_secs(5);
const STOP_STEPS: [EndStep; 1] = [(Some(Signal::INT), STOP_GRACE)];

type HandshakeReceiver = program::HandshakeReceiver<HandshakeLineError>;

const HELP: &str = "\
talon-framed-bridge runs an OpenTalon v0.0.1 plugin (lengths and JSON on a unix socket) as a plugin that speaks gRPC.

Usage: talon-framed-bridge -- PROGRAM [ARGUMENT …]

It is started by talon, for plugins whose dialect is opentalon-v0, or which turn out to speak that.

Options:
  -h, --help     print this
  -V, --version  print the version";

fn main() -> ExitCode {
    logging::log_panics();
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_ref().map(|argument| argument.to_str()) {
        Some(Some("--")) => {}
        Some(Some("--version" | "-V")) => {
            println!("talon-framed-bridge {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(Some("--help" | "-h")) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => return usage_error(),
    }
    let Some(program) = arguments.next() else { return usage_error() };
    let arguments: Vec<OsString> = arguments.collect();
    // One thread: it waits for the program, and for the host.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            logging::error(format_args!("the bridge cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(run(program, arguments))
}

fn usage_error() -> ExitCode {
    eprintln!("talon-framed-bridge is called with -- and a plugin's command. See talon-framed-bridge --help");
    ExitCode::from(USAGE)
}

/// How far the start has come, for the message about a program that ended.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Line,
    Capabilities,
    Serving,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "before its handshake line",
            Self::Capabilities => "before it declared its capabilities",
            Self::Serving => "while it served",
        })
    }
}

/// Why the program cannot be served, or no longer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Handshake(#[from] program::HandshakeError<HandshakeLineError>),
    #[error(
        "it printed no handshake line within {HANDSHAKE_TIMEOUT:?}: let it print 1|unix|PATH once it listens"
    )]
    HandshakeTimeout,
    #[error(transparent)]
    Capabilities(#[from] CapabilitiesError),
    #[error("it did not declare its capabilities within {CAPABILITIES_TIMEOUT:?}")]
    CapabilitiesTimeout,
    #[error("the bridge cannot watch for signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error(transparent)]
    Serve(#[from] ServeError),
}

async fn run(program: OsString, arguments: Vec<OsString>) -> ExitCode {
    let (mut child, line) = match program::start(&program, &arguments, [], None, handshake::parse) {
        Ok(started) => started,
        Err(error) => {
            logging::error(format_args!("the plugin's program {error}"));
            return ExitCode::FAILURE;
        }
    };
    let shown = child.name().display().to_string();
    let step = Cell::new(Phase::Line);
    let failure = tokio::select! {
        biased;
        ended = child.ended() => return report_exit(&shown, step.get(), ended),
        served = serve(line, &step) => served.err(),
    };
    let Some(failure) = failure else {
        if child.stop(&STOP_STEPS).await.killed {
            logging::warn(format_args!(
                "its program did not end within {STOP_GRACE:?} of SIGINT and was killed"
            ));
        }
        return ExitCode::SUCCESS;
    };
    // A failure usually means that the program ended, which is noticed a moment later and explains more.
    if let Ok(ended) = timeout(EXIT_REPORT_TIMEOUT, child.ended()).await {
        return report_exit(&shown, step.get(), ended);
    }
    // Killed before the error is printed: the last line is reported with the failure of the start.
    child.kill().await;
    logging::error(format_args!("the plugin's program {shown} cannot be used: {failure}"));
    ExitCode::FAILURE
}

/// Serves from the start of the program until the end of the service.
async fn serve(line: HandshakeReceiver, step: &Cell<Phase>) -> Result<(), Failure> {
    let mut stop_signals = StopSignals::install().map_err(Failure::Signals)?;
    let plugin = tokio::select! {
        plugin = connect(line, step) => plugin?,
        () = stop_signals.recv() => return Ok(()),
    };
    step.set(Phase::Serving);
    let unheard = async {
        stop_signals.recv().await;
        // The SDK receives the same signal and drains. This is for a signal that came just before the SDK
        // began to listen.
        sleep(DEFAULT_GRACE * 2).await;
    };
    tokio::select! {
        served = plugin.serve_async() => Ok(served?),
        () = unheard => Ok(()),
    }
}

/// Reads its handshake line, connects to its socket, and reads its capabilities.
async fn connect(line: HandshakeReceiver, step: &Cell<Phase>) -> Result<Plugin, Failure> {
    logging::info("waiting for the handshake line of the plugin's program");
    // A dropped sender belongs to a thread that ended without a result.
    let line = timeout(HANDSHAKE_TIMEOUT, line).await.map_err(|_| Failure::HandshakeTimeout)?;
    let socket = line.unwrap_or(Err(program::HandshakeError::Closed))?;
    step.set(Phase::Capabilities);
    logging::info("asking the plugin's program for its capabilities, by OpenTalon v0.0.1");
    let exchange = Exchange::new(socket);
    let capabilities = timeout(CAPABILITIES_TIMEOUT, tools::read(&exchange)).await;
    let capabilities = capabilities.map_err(|_| Failure::CapabilitiesTimeout)??;
    Ok(tools::plugin(exchange, capabilities))
}
