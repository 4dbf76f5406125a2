//! The life cycle of the process: takes its settings and its listener, serves, and ends with the control socket.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use talon_child::ExitReason;
use talon_child::signals::Signals;
use talon_control::{Control, ControlError, Packet, memfd};
use talon_extensions::{Extensions, ParseExtensionsError};
use talon_proto::gateway::{
    AgentConnection, Configure, HostConnection, Listening, Ping, Pong, Ready, Refused, ToGateway,
    from_gateway, to_gateway,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::auth_providers::AuthProviders;
use crate::backends::Backends;
use crate::config_updates;
use crate::control::{ConnectionError, SupervisorConnector, SupervisorControl, message};
use crate::credentials::{HostCredentials, follow_revocations};
use crate::identity::Role;
use crate::listener::{Certificates, ListenError, Server, TlsError, Traffic, bind, handed_in, serve};
use crate::route_table::PluginRoutes;
use crate::router::router;
use crate::settings::{Settings, SettingsError};
use crate::task_updates;

/// How long requests may take to finish at shutdown. The supervisor waits somewhat longer.
const CLOSE_GRACE: Duration = Duration::from_secs(3);
/// The longest file beside a configuration: some certificates of a few kilobytes each, and 256 routes with the longest templates.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Serves the supervisor at the other end of `control`, until it is closed or SIGTERM arrives.
pub async fn run(control: OwnedFd) -> ExitReason {
    let (control, mut signals) = match (Control::new(control), Signals::listen()) {
        (Ok(control), Ok(signals)) => (Arc::new(control), signals),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the control socket or signals cannot be watched");
            return ExitReason::Refused;
        }
    };
    let started = tokio::select! {
        started = start(&control) => started,
        () = signals.terminated() => return ExitReason::Requested,
    };
    let running = match started {
        Ok(running) => running,
        Err(StartError::Gone) => return ExitReason::Requested,
        Err(StartError::Refused { message: text, retryable }) => {
            tracing::error!(reason = text, retryable, "the gateway cannot begin");
            // If the message does not arrive, the log has it.
            let refused = from_gateway::Kind::Refused(Refused { message: text, retryable });
            let _sent = control.send(&message(refused), None).await;
            return ExitReason::Refused;
        }
        Err(error @ (StartError::Protocol(_) | StartError::Control(_))) => {
            tracing::error!(%error, "the starter does not speak the control protocol; is it of another version?");
            return ExitReason::ProtocolError;
        }
    };
    let end = running.serve(&control, &mut signals).await;
    running.finish().await;
    end
}

/// Why the gateway does not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("the supervisor is gone")]
    Gone,
    #[error("{message}")]
    Refused { message: String, retryable: bool },
    #[error("{0}")]
    Protocol(&'static str),
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// Why a configuration is not taken over.
#[derive(Debug, thiserror::Error)]
enum ConfigureError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("what belongs to the configuration did not come with it: {0}")]
    File(#[from] memfd::ReadError),
    #[error("what belongs to the configuration did not come with it")]
    NoFile,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Extensions(#[from] ParseExtensionsError),
}

impl From<ConfigureError> for StartError {
    fn from(error: ConfigureError) -> Self {
        Self::Refused { message: error.to_string(), retryable: false }
    }
}

impl From<ListenError> for StartError {
    fn from(error: ListenError) -> Self {
        Self::Refused { retryable: error.is_retryable(), message: error.to_string() }
    }
}

async fn next(control: &SupervisorControl) -> Result<Packet<ToGateway>, StartError> {
    control.receive().await?.ok_or(StartError::Gone)
}

async fn start(control: &Arc<SupervisorControl>) -> Result<RunningGateway, StartError> {
    let Packet { message: first, descriptor } = next(control).await?;
    let Some(to_gateway::Kind::Configure(configure)) = first.kind else {
        return Err(StartError::Protocol("the first message was not `Configure`"));
    };
    let certificates = Arc::new(Certificates::default());
    let mut settings = read(&configure, descriptor, &certificates)?;
    let listener = if configure.listener_follows {
        let Packet { message: second, descriptor } = next(control).await?;
        let Some(to_gateway::Kind::Listener(_)) = second.kind else {
            return Err(StartError::Protocol("`Configure` was not followed by `Listener`"));
        };
        handed_in(descriptor)?
    } else {
        let listener = bind(settings.address)?;
        let address = listener.local_addr().map_err(ListenError::Io)?.to_string();
        let listening = from_gateway::Kind::Listening(Listening { address });
        control.send(&message(listening), Some(listener.as_fd())).await?;
        listener
    };
    // The port 0 was chosen by the kernel, and a socket that was handed in has an address of its own.
    settings.address = listener.local_addr().map_err(ListenError::Io)?;
    Ok(RunningGateway::start(control, settings, certificates, listener))
}

/// Reads a configuration and puts its certificate into use.
fn read(
    configure: &Configure,
    descriptor: Option<OwnedFd>,
    certificates: &Certificates,
) -> Result<Settings, ConfigureError> {
    let mut settings = Settings::try_from(configure)?;
    let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let bytes = if configure.tls.is_some() || configure.extensions_bytes > 0 {
        memfd::read(descriptor.ok_or(ConfigureError::NoFile)?, MAX_FILE_BYTES)?
    } else {
        Vec::new()
    };
    let start = bytes.len().checked_sub(length(configure.extensions_bytes)).ok_or(ConfigureError::NoFile)?;
    let (tls_bytes, extensions) = bytes.split_at(start);
    let Extensions { routes, auth, .. } = Extensions::from_bytes(extensions)?;
    (settings.routes, settings.auth) = (PluginRoutes::new(routes), AuthProviders::new(auth));
    if let Some(tls) = &configure.tls {
        let (chain, key) =
            tls_bytes.split_at_checked(length(tls.certificate_bytes)).ok_or(ConfigureError::NoFile)?;
        certificates.set(chain, key)?;
    } else {
        certificates.clear();
    }
    Ok(settings)
}

/// Why a message was not obeyed. Only logged: the supervisor's mistake does not concern those who are served.
#[derive(Debug, thiserror::Error)]
enum MessageError {
    #[error("it says nothing that this version knows, or not now")]
    Unknown,
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// The gateway, while it serves.
struct RunningGateway {
    app: App,
    server: Server,
    certificates: Arc<Certificates>,
    connector: Arc<SupervisorConnector>,
    traffic: Arc<Traffic>,
}

impl RunningGateway {
    fn start(
        control: &Arc<SupervisorControl>,
        settings: Settings,
        certificates: Arc<Certificates>,
        listener: TcpListener,
    ) -> Self {
        let connector = SupervisorConnector::new(Arc::clone(control));
        let backends = Backends::new(&(Arc::clone(&connector) as _));
        let credentials = Arc::new(HostCredentials::new(backends.clone()));
        let app = App::new(settings, backends, credentials, CancellationToken::new());
        let server = Server::new(router(app.clone()), app.clone(), Arc::clone(&certificates));
        tokio::spawn(serve(listener, server.clone()));
        let following = follow_revocations(app.backends.clone(), app.revocations.clone());
        let ending = app.ending();
        tokio::spawn(async move { ending.run_until_cancelled(following).await });
        let settings = app.clone();
        let may_watch = move || settings.settings().max_role >= Role::Operate;
        let following =
            config_updates::follow(app.backends.clone(), app.config_updates.clone(), may_watch.clone());
        let ending = app.ending();
        tokio::spawn(async move { ending.run_until_cancelled(following).await });
        let following = task_updates::follow(app.backends.clone(), app.task_updates.clone(), may_watch);
        let ending = app.ending();
        tokio::spawn(async move { ending.run_until_cancelled(following).await });
        let traffic = server.traffic();
        Self { app, server, certificates, connector, traffic }
    }

    async fn serve(&self, control: &SupervisorControl, signals: &mut Signals) -> ExitReason {
        let address = self.app.settings().address;
        tracing::info!(%address, "the gateway serves");
        if self.send_ready(control, Vec::new()).await.is_err() {
            return ExitReason::Requested;
        }
        loop {
            let received = tokio::select! {
                received = control.receive() => received,
                () = signals.terminated() => return ExitReason::Requested,
            };
            let handled = match received {
                Ok(Some(packet)) => self.handle(control, packet).await,
                Ok(None) => return ExitReason::Requested,
                Err(error) => {
                    tracing::error!(%error, "the control socket failed: ending");
                    return ExitReason::ProtocolError;
                }
            };
            match handled {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a message on the control socket was not obeyed"),
                Err(_gone) => return ExitReason::Requested,
            }
        }
    }

    async fn handle(
        &self,
        control: &SupervisorControl,
        packet: Packet<ToGateway>,
    ) -> Result<Result<(), MessageError>, ControlError> {
        let Packet { message: received, descriptor } = packet;
        match received.kind {
            Some(to_gateway::Kind::Configure(configure)) => {
                let problems = match read(&configure, descriptor, &self.certificates) {
                    Ok(settings) => {
                        let address = self.app.settings().address;
                        self.app.set_settings(Settings { address, ..settings });
                        Vec::new()
                    }
                    Err(error) => {
                        tracing::error!(%error, "a changed configuration is not taken over");
                        vec![format!(
                            "the changed configuration was not taken over, and the one before stays: {error}"
                        )]
                    }
                };
                self.send_ready(control, problems).await.map(Ok)
            }
            Some(to_gateway::Kind::Ping(Ping { id })) => {
                let traffic = &self.traffic;
                let (connections, requests) = (traffic.connections(), traffic.requests());
                let pong = Pong { id, connections, requests, refused: traffic.refused() };
                control.send(&message(from_gateway::Kind::Pong(pong)), None).await.map(Ok)
            }
            Some(
                to_gateway::Kind::HostConnection(HostConnection { id })
                | to_gateway::Kind::AgentConnection(AgentConnection { id }),
            ) => Ok(self.connector.receive(id, descriptor).map_err(MessageError::from)),
            Some(to_gateway::Kind::Listener(_)) | None => Ok(Err(MessageError::Unknown)),
        }
    }

    async fn send_ready(
        &self,
        control: &SupervisorControl,
        problems: Vec<String>,
    ) -> Result<(), ControlError> {
        let address = self.app.settings().address.to_string();
        control.send(&message(from_gateway::Kind::Ready(Ready { address, problems })), None).await
    }

    /// Accepts nothing new, ends streams, and waits for running requests.
    async fn finish(self) {
        self.app.ending().cancel();
        if tokio::time::timeout(CLOSE_GRACE, self.server.wait_closed()).await.is_err() {
            tracing::warn!("ending although some requests are not answered");
        }
        tracing::info!("the gateway has ended");
    }
}
