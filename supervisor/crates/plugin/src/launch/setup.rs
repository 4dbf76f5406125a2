//! From a handshake to a plugin that serves.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use talon_jail::Mode;
use talon_plugin_client::capability::ActionNames;
use talon_plugin_client::connect::{ClientIdentity, Target, TlsError};
use talon_plugin_client::handshake::{Address, Handshake};
use talon_plugin_client::{
    Capability, Client, HealthStatus, InitOutcome, LinkError, Methods, RefreshError, StdioPiece,
};
use talon_plugin_config::bridge::Bridge;
use talon_plugin_config::spec::{Dialect, NetworkAccess, PluginSpec};
use talon_sanitize::{Raw, Sanitized};
use talon_wire::frames::FrameLimits;
use tokio_util::task::TaskTracker;

use super::error::{LaunchError, LaunchStep};
use super::process::Process;
use crate::logs::{Level, LogSink, Stream};
use crate::rundir::PrivateDir;
use crate::stdio::{LastLines, StreamLogGuard, StreamLogger};

/// The interval between health checks of a plugin that does not serve yet. Polled, because most plugins do
/// not implement the health service's Watch.
const HEALTH_POLL: Duration = Duration::from_millis(100);

/// The delay before a broken stream of the program (its output, its broker) is reopened; doubles up to
/// [`STREAM_RETRY_MAX`].
const STREAM_RETRY: Duration = Duration::from_secs(1);
const STREAM_RETRY_MAX: Duration = Duration::from_secs(60);

/// The connection target of a handshake, if it is allowed.
pub(super) fn target(
    spec: &PluginSpec,
    handshake: &Handshake,
    identity: Option<&ClientIdentity>,
    dir: &Arc<PrivateDir>,
    uid: u32,
    monitor_pid: u32,
    frames: FrameLimits,
) -> Result<Target, LaunchError> {
    let tls = match (identity, &handshake.server_cert) {
        (None, None) => None,
        (None, Some(_)) => return Err(LaunchError::UnwantedTls),
        (Some(_), None) => return Err(TlsError::NoCertificate.into()),
        (Some(identity), Some(field)) => Some(identity.with_server(field)?),
    };
    if handshake.mux {
        return Err(LaunchError::Multiplexed);
    }
    if let Address::Tcp(addr) = handshake.address
        && spec.allow_tcp
        && spec.sandbox.mode != Mode::Off
        && spec.sandbox.network != NetworkAccess::Full
    {
        return Err(LaunchError::TcpInside { addr });
    }
    Target::new(&handshake.address, dir.sockets(), uid, monitor_pid, spec.allow_tcp)
        .map(|target| target.with_tls(tls).with_frames(frames))
        .map_err(|error| LaunchError::Connect(Raw::of(&error).line(), Some(error)))
}

/// Connects to the target of a handshake.
pub(super) async fn connect(
    spec: &PluginSpec,
    target: Target,
    dialect: Dialect,
) -> Result<Client, LaunchError> {
    // A bridge is built with the Talon SDK, whatever service the program behind it has.
    let methods = match Bridge::for_plugin(spec) {
        Some(_) => Methods::default(),
        None => Methods::for_service(&spec.service),
    };
    // OpenTalon's host lets tools have any name.
    let methods = match dialect {
        Dialect::OpenTalon => methods.with_action_names(ActionNames::Escaped),
        _ => methods,
    };
    Client::connect(spec.name.clone(), methods, target, spec.connections).await.map_err(|error| {
        let words = connect_cause(&error);
        match error {
            LinkError::Connect(own) => LaunchError::Connect(words, Some(own)),
            LinkError::Http(_) => LaunchError::Connect(words, None),
        }
    })
}

/// Connects, and starts reading the program's output and broker over the connection.
pub(super) async fn connect_and_drain(
    spec: &PluginSpec,
    target: Target,
    handshake: &Handshake,
    (logs, instance): (&LogSink, u32),
    process: &Process,
    (readers, last_words): (&TaskTracker, &LastLines),
) -> Result<Client, LaunchError> {
    let client = connect(spec, target, handshake.dialect).await?;
    if handshake.dialect == Dialect::GoPlugin {
        let logger = |stream| StreamLogger::new(logs.clone(), instance, stream, last_words.clone());
        let loggers = [logger(Stream::Stdout), logger(Stream::Stderr)];
        readers.spawn(drain_output(client.clone(), loggers, logs.line_bytes(), process.gone_signal()));
        readers.spawn(hold_broker_open(client.clone(), process.gone_signal()));
    }
    Ok(client)
}

/// Initializes a plugin over its socket until it serves.
pub(super) async fn initialize(
    step: &mut LaunchStep,
    spec: &PluginSpec,
    target: Target,
    handshake: &Handshake,
    (logs, instance): (&LogSink, u32),
    process: &Process,
    read_by: (&TaskTracker, &LastLines),
) -> Result<(Client, Arc<Capability>), LaunchError> {
    *step = LaunchStep::Connect;
    let client = connect_and_drain(spec, target, handshake, (logs, instance), process, read_by).await?;
    let ready = tokio::select! {
        biased;
        flood = client.flood() => return Err(LaunchError::Flooded(flood)),
        ready = settle(step, spec, &client, (logs, instance)) => ready,
    };
    match (ready, client.flood().now_or_never()) {
        // The flood is known before the step that it broke fails, and says more.
        (Err(_), Some(flood)) => Err(LaunchError::Flooded(flood)),
        (ready, _) => Ok((client, ready?)),
    }
}

/// From a connection to a plugin that serves: its settings, its capabilities, its health.
async fn settle(
    step: &mut LaunchStep,
    spec: &PluginSpec,
    client: &Client,
    (logs, instance): (&LogSink, u32),
) -> Result<Arc<Capability>, LaunchError> {
    *step = LaunchStep::Init;
    match client.init(&spec.config).await.map_err(LaunchError::Init)? {
        InitOutcome::Unimplemented if !spec.config.is_empty() => {
            logs.note(instance, Level::Warn, "it has no Init, so its config was not given to it");
        }
        InitOutcome::Done | InitOutcome::Unimplemented => {}
    }
    wait_until_serving(step, spec, client).await
}

/// Reads the capabilities, then waits until the plugin serves.
pub(super) async fn wait_until_serving(
    step: &mut LaunchStep,
    spec: &PluginSpec,
    client: &Client,
) -> Result<Arc<Capability>, LaunchError> {
    *step = LaunchStep::Capabilities;
    let capability = client.capabilities().await.map_err(|error| match error {
        RefreshError::Call(cause) => LaunchError::Capabilities(cause),
        RefreshError::Unimplemented(cause) => LaunchError::Service { cause, service: spec.service.clone() },
        RefreshError::Refused(error) => LaunchError::Declaration(error),
    })?;
    *step = LaunchStep::Health;
    loop {
        match client.health(spec.lifecycle.health_check_timeout).await {
            HealthStatus::Serving => return Ok(capability),
            HealthStatus::NotServing => tokio::time::sleep(HEALTH_POLL).await,
            HealthStatus::Failed(text) => return Err(LaunchError::Health(text)),
        }
    }
}

/// Reads a go-plugin program's output stream for as long as the program lives.
pub(super) async fn drain_output(
    client: Client,
    [mut stdout, mut stderr]: [StreamLogger; 2],
    line_bytes: usize,
    gone: impl Future<Output = ()>,
) {
    let drain = async {
        let mut retry = RetryDelay::default();
        while log_stdio(&client, &mut stdout, &mut stderr, line_bytes).await {
            retry.pause().await;
        }
    };
    tokio::select! {
        () = gone => {}
        () = drain => {}
    }
}

/// Logs one output stream to its end. False: the program has no such stream.
async fn log_stdio(
    client: &Client,
    stdout: &mut StreamLogger,
    stderr: &mut StreamLogger,
    line_bytes: usize,
) -> bool {
    let mut output = client.stdio().await;
    let (mut stdout, mut stderr) =
        (StreamLogGuard::new(stdout, line_bytes), StreamLogGuard::new(stderr, line_bytes));
    while let Some(piece) = output.next().await {
        match piece {
            StdioPiece::Stdout(bytes) => stdout.log_chunk(&bytes),
            StdioPiece::Stderr(bytes) => stderr.log_chunk(&bytes),
        }
        stdout.throttle().await;
        stderr.throttle().await;
    }
    output.is_served()
}

/// Holds a go-plugin program's broker open for as long as the program lives.
pub(super) async fn hold_broker_open(client: Client, gone: impl Future<Output = ()>) {
    let hold = async {
        let mut retry = RetryDelay::default();
        while client.drain_broker().await {
            retry.pause().await;
        }
    };
    tokio::select! {
        () = gone => {}
        () = hold => {}
    }
}

/// The next wait before a stream is opened again.
struct RetryDelay(Duration);

impl Default for RetryDelay {
    fn default() -> Self {
        Self(STREAM_RETRY)
    }
}

impl RetryDelay {
    async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (2 * self.0).min(STREAM_RETRY_MAX);
    }
}

/// The connector's own error, or the innermost cause of an HTTP/2 error.
fn connect_cause(error: &LinkError) -> Sanitized {
    let error = match error {
        LinkError::Connect(own) => return Raw::of(own).line(),
        LinkError::Http(error) => error,
    };
    Raw::of(talon_error_chain::innermost(error)).line()
}
