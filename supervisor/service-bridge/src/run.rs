//! From the start of the program to its end.

use std::cell::Cell;
use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use talon_bridge::environment::plugin_name;
use talon_bridge::process::{EndStep, report_exit};
use talon_bridge::stop_signals::StopSignals;
use talon_bridge::{logging, program};
use talon_sdk::proto::Action;
use talon_sdk::{DEFAULT_GRACE, Plugin, ServeError};
use tokio::time::{sleep, timeout};

use crate::client::Client;
use crate::command::Command;
use crate::handshake::{self, HandshakeLineError};
use crate::methods::{self, Method, MethodsError};
use crate::output::Lines;
use crate::tools::{self, TooManyFieldsError};

/// How long the program may take to print its handshake line: as go-plugin's hosts wait. A supervisor's
/// `start_timeout` usually passes first, and its error names the step.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the exit of the program may take to be noticed.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_millis(200);
/// After `Shutdown`: as long as go-plugin's hosts wait, then SIGTERM, then SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(2);
const STOP_STEPS: [EndStep; 2] = [(None, STOP_GRACE), (Some(Signal::TERM), STOP_GRACE)];

/// The ports that go-plugin's libraries ask for, as its hosts set them. Only TCP listeners use them.
const TCP_PORTS: [(&str, &str); 2] = [("PLUGIN_MIN_PORT", "10000"), ("PLUGIN_MAX_PORT", "25000")];
/// Where go-plugin's libraries from version 1.5 on make their socket; older ones use `TMPDIR`.
const SOCKET_DIR_VARIABLE: &str = "PLUGIN_UNIX_SOCKET_DIR";

/// The largest message, in bytes: what the supervisor takes from the plugin, and its default.
const MAX_MESSAGE_VARIABLE: &str = "OPENTALON_GRPC_MAX_MSG_BYTES";
const DEFAULT_MAX_MESSAGE_BYTES: usize = 8 << 20;

/// The declared name when the plugin has none.
const DEFAULT_NAME: &str = "service-bridge";

/// How far the start has come, for the message about a program that ended.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Line,
    Connection,
    Serving,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "before its handshake line; does it expect its own cookie",
            Self::Connection => "before it served",
            Self::Serving => "while it served",
        })
    }
}

/// Why the program cannot be served, or no longer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Handshake(#[from] program::HandshakeError<HandshakeLineError>),
    #[error("it printed no handshake line within {HANDSHAKE_TIMEOUT:?}")]
    HandshakeTimeout,
    #[error("its socket cannot be connected to: {0}")]
    Connect(#[from] tonic::transport::Error),
    #[error("{0}: look in its log for the reason")]
    Health(String),
    #[error("the bridge cannot watch for signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// What is read before the program starts.
#[derive(Debug, thiserror::Error)]
enum DescriptorFailure {
    #[error(transparent)]
    Methods(#[from] MethodsError),
    #[error(transparent)]
    Fields(#[from] TooManyFieldsError),
}

pub(crate) async fn run(command: Command) -> ExitCode {
    let methods = match read_methods(&command) {
        Ok(methods) => methods,
        Err(error) => {
            logging::error(format_args!("descriptor {}: {error}", command.descriptor.display()));
            return ExitCode::FAILURE;
        }
    };
    let started = program::start(
        &command.program,
        &command.args,
        environment(&command),
        Some(SOCKET_DIR_VARIABLE),
        handshake::parse,
    );
    let (mut child, line) = match started {
        Ok(started) => started,
        Err(error) => {
            logging::error(format_args!("the plugin's program {error}"));
            return ExitCode::FAILURE;
        }
    };
    let shown = child.name().display().to_string();
    let phase = Cell::new(Phase::Line);
    let failure = tokio::select! {
        biased;
        ended = child.ended() => return report_exit(&shown, phase.get(), ended),
        served = serve(&command, methods, line, &phase) => served.err(),
    };
    let Some(failure) = failure else {
        if child.stop(&STOP_STEPS).await.killed {
            logging::warn(format_args!("its program ended neither on request nor by SIGTERM and was killed"));
        }
        return ExitCode::SUCCESS;
    };
    // A failure usually means that the program ended, which is noticed a moment later and explains more.
    if let Ok(ended) = timeout(EXIT_REPORT_TIMEOUT, child.ended()).await {
        return report_exit(&shown, phase.get(), ended);
    }
    // Killed before the error is printed: the last line is reported with the failure of the start.
    child.kill().await;
    logging::error(format_args!("the plugin's program {shown} cannot be used: {failure}"));
    ExitCode::FAILURE
}

fn read_methods(command: &Command) -> Result<Vec<(Method, Action)>, DescriptorFailure> {
    let methods = methods::read(command)?;
    if !methods.streaming.is_empty() && command.methods.is_empty() {
        logging::warn(format_args!(
            "not offered, because they stream: {}",
            methods.streaming.iter().take(MAX_LOGGED).cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(tools::actions(methods.offered)?)
}

/// How many methods that stream are named in the log.
const MAX_LOGGED: usize = 16;

/// The variables of go-plugin's handshake, for the program.
fn environment(command: &Command) -> Vec<(OsString, OsString)> {
    let versions: Vec<String> = command.app_versions.iter().map(u32::to_string).collect();
    let mut env: Vec<(OsString, OsString)> =
        TCP_PORTS.iter().map(|(name, port)| (name.into(), port.into())).collect();
    env.push(("PLUGIN_PROTOCOL_VERSIONS".into(), versions.join(",").into()));
    env.extend(command.cookie.iter().map(|(key, value)| (key.into(), value.into())));
    env
}

/// Serves from the start of the program until the end of the service.
async fn serve(
    command: &Command,
    methods: Vec<(Method, Action)>,
    line: program::HandshakeReceiver<HandshakeLineError>,
    phase: &Cell<Phase>,
) -> Result<(), Failure> {
    let mut stop_signals = StopSignals::install().map_err(Failure::Signals)?;
    let client = tokio::select! {
        client = connect(command, line, phase) => client?,
        () = stop_signals.recv() => return Ok(()),
    };
    phase.set(Phase::Serving);
    let tools = methods.into_iter().map(|(method, action)| tools::tool(method, action, client.clone()));
    let plugin = Plugin::new(plugin_name().unwrap_or_else(|| DEFAULT_NAME.to_owned()))
        .description(format!("The service {} of a go-plugin program.", command.service))
        .tools(tools);
    let (output, lines) = (client.clone(), Arc::new(Lines::default()));
    let broker = client.clone();
    let output = tokio::spawn(async move { output.forward_output(|piece| lines.forward(&piece)).await });
    let broker = tokio::spawn(async move { broker.hold_broker_open().await });
    let unheard = async {
        stop_signals.recv().await;
        // The SDK receives the same signal and drains. This is for a signal that came just before the SDK
        // began to listen.
        sleep(DEFAULT_GRACE * 2).await;
    };
    let served = tokio::select! {
        served = plugin.serve_async() => served.map_err(Failure::from),
        reason = client.watch_health(command.health) => return Err(Failure::Health(reason)),
        () = unheard => Ok(()),
    };
    client.shutdown().await;
    output.abort();
    broker.abort();
    served
}

/// Reads its handshake line, connects to its socket, and checks its health.
async fn connect(
    command: &Command,
    line: program::HandshakeReceiver<HandshakeLineError>,
    phase: &Cell<Phase>,
) -> Result<Client, Failure> {
    logging::info("waiting for the handshake line of the plugin's program");
    // A dropped sender belongs to a thread that ended without a result.
    let line = timeout(HANDSHAKE_TIMEOUT, line).await.map_err(|_| Failure::HandshakeTimeout)?;
    let socket = line.unwrap_or(Err(program::HandshakeError::Closed))?;
    phase.set(Phase::Connection);
    let client = Client::connect(&socket, max_message_bytes()).await?;
    client.check(command.health.timeout).await.map_err(Failure::Health)?;
    Ok(client)
}

fn max_message_bytes() -> usize {
    let set = std::env::var(MAX_MESSAGE_VARIABLE).ok().and_then(|text| text.parse().ok());
    set.unwrap_or(DEFAULT_MAX_MESSAGE_BYTES)
}
