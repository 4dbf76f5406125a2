//! The control protocol with a process of `talon-gateway`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::sockopt::socket_acceptconn;
use talon_control::{ControlError, memfd};
use talon_listen::LogThrottle;
use talon_proto::gateway::{
    AgentConnection, Configure, FromGateway, HostConnection, Listener, Listening, NeedAgent, NeedHost, Ping,
    Pong, Ready, Refused, ToGateway, from_gateway, to_gateway,
};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::backend::{connect_agent, gateway_peer};
use super::configuration::GatewayConfiguration;
use crate::agent::{AgentSupervisor, HostLink};
use crate::config::Role;
use crate::service::{ControlSocket, ManagedService, ManagedServiceStatus, ServiceHandle, sanitize_report};

/// The wait before a failed message is retried: a shortage of descriptors ends as connections end.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Problems of which it may tell at once.
const MAX_COMPLAINTS: usize = 32;

static RESOURCE_SHORTAGE: LogThrottle = LogThrottle::new();
static NO_AGENT: LogThrottle = LogThrottle::new();

/// The gateway.
pub(super) struct GatewayService {
    agent: Option<AgentSupervisor>,
    pub(super) host_link: HostLink,
    /// The most that its requests may do; fixed at the start.
    ceiling: Role,
    settings: Mutex<Settings>,
    /// The listening socket, kept over its processes.
    listener: Mutex<Option<Arc<OwnedFd>>>,
    /// Where it serves, as it says itself.
    address: Mutex<Option<String>>,
    /// The number of the latest ping that was asked for.
    pinged: Mutex<u64>,
    /// The latest answer to one.
    pong: watch::Sender<Option<Pong>>,
}

/// What it is to be told.
#[derive(Clone, Default)]
struct Settings {
    /// How often they were set. At 0 it receives nothing.
    version: u64,
    configuration: Arc<GatewayConfiguration>,
}

/// What the current process has received.
#[derive(Default)]
pub(super) struct SessionState {
    /// The version of the settings that was sent.
    settings: u64,
    /// The ids of its latest unanswered requests for connections.
    needs_host: Option<u64>,
    needs_agent: Option<u64>,
    /// The number of the latest ping that was sent.
    pinged: u64,
    ready: bool,
    /// The pending retry after a failed message.
    retry: Option<AbortOnDropHandle<()>>,
}

impl GatewayService {
    pub(super) fn new(agent: Option<AgentSupervisor>, ceiling: Role) -> Self {
        Self {
            agent,
            host_link: HostLink::new(gateway_peer(ceiling)),
            ceiling,
            settings: Mutex::default(),
            listener: Mutex::default(),
            address: Mutex::default(),
            pinged: Mutex::default(),
            pong: watch::Sender::new(None),
        }
    }

    /// Sets what to send from now on.
    pub(super) fn set_configuration(&self, configuration: GatewayConfiguration) {
        let mut settings = self.settings.lock();
        if settings.version == 0 || *settings.configuration != configuration {
            *settings = Settings { version: settings.version + 1, configuration: Arc::new(configuration) };
        }
    }

    /// The listening socket, if there is one.
    pub(super) fn listener(&self) -> Option<Arc<OwnedFd>> {
        self.listener.lock().clone()
    }

    pub(super) fn set_listener(&self, listener: OwnedFd) {
        *self.listener.lock() = Some(Arc::new(listener));
    }

    /// The address at which it serves, while it does.
    pub(super) fn address(&self) -> Option<String> {
        self.address.lock().clone()
    }

    /// Whether its clients speak TLS to it.
    pub(super) fn uses_tls(&self) -> bool {
        self.settings.lock().configuration.message.tls.is_some()
    }

    /// The number of a new ping, and the answers as they come.
    pub(super) fn ping(&self) -> (u64, watch::Receiver<Option<Pong>>) {
        let mut pinged = self.pinged.lock();
        *pinged += 1;
        (*pinged, self.pong.subscribe())
    }

    /// The latest answer to a ping.
    pub(super) fn report(&self) -> Option<Pong> {
        *self.pong.borrow()
    }

    /// Sends the settings if they are not the ones it has, and with the first ones the listener. Errors on our side are retried.
    async fn configure(
        &self,
        line: &ControlSocket<Self>,
        given: &mut SessionState,
    ) -> Result<io::Result<()>, ControlError> {
        let Settings { version, configuration } = self.settings.lock().clone();
        if version == given.settings {
            return Ok(Ok(()));
        }
        let listener = self.listener().filter(|_| given.settings == 0);
        let file = if !configuration.file.is_empty() {
            match memfd::seal("talon-gateway-configuration", &configuration.file) {
                Ok(file) => Some(file),
                Err(error) => return Ok(Err(error)),
            }
        } else {
            None
        };
        let configure = Configure { listener_follows: listener.is_some(), ..configuration.message.clone() };
        line.send(&message(to_gateway::Kind::Configure(configure)), file.as_ref().map(AsFd::as_fd)).await?;
        if let Some(listener) = listener {
            line.send(&message(to_gateway::Kind::Listener(Listener {})), Some(listener.as_fd())).await?;
        }
        given.settings = version;
        Ok(Ok(()))
    }

    /// Sends the connections that it asked for. Errors on our side are retried.
    async fn connect(
        &self,
        status: &ManagedServiceStatus,
        line: &ControlSocket<Self>,
        given: &mut SessionState,
    ) -> Result<io::Result<()>, ControlError> {
        if let Some(id) = given.needs_host {
            match self.host_link.connect(status.uid, status.pid) {
                Ok(Some(theirs)) => {
                    let connection = to_gateway::Kind::HostConnection(HostConnection { id });
                    line.send(&message(connection), Some(theirs.as_fd())).await?;
                    given.needs_host = None;
                }
                // Setting the endpoint triggers another attempt.
                Ok(None) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        let Some(id) = given.needs_agent.take() else { return Ok(Ok(())) };
        let peer = (status.uid, self.host_link.gid(), status.pid);
        let agent = self.agent.as_ref().filter(|agent| agent.can_serve());
        let theirs = match agent.map(|agent| connect_agent(agent, self.ceiling, peer)).transpose() {
            Ok(theirs) => theirs,
            Err(error) => {
                if let Some(unsaid) = NO_AGENT.permit() {
                    tracing::warn!(%error, unsaid, "the gateway gets no connection to the agent");
                }
                None
            }
        };
        // Without one its requests fail now, and it asks again with its next one.
        let connection = to_gateway::Kind::AgentConnection(AgentConnection { id });
        line.send(&message(connection), theirs.as_ref().map(AsFd::as_fd)).await?;
        Ok(Ok(()))
    }
}

impl ManagedService for GatewayService {
    const NAME: &'static str = "gateway";
    type Outgoing = ToGateway;
    type Incoming = FromGateway;
    type Session = SessionState;

    async fn reconcile(
        held: &ServiceHandle<Self>,
        line: &ControlSocket<Self>,
        given: &mut SessionState,
    ) -> Result<(), ControlError> {
        let gateway = held.service();
        let told = gateway.configure(line, given).await?;
        let connected = gateway.connect(&held.status(), line, given).await?;
        if let Err(error) = told.and(connected) {
            if let Some(unsaid) = RESOURCE_SHORTAGE.permit() {
                tracing::warn!(%error, unsaid, "the gateway waits for what it should have; see the open files limit (LimitNOFILE=)");
            }
            let held = held.clone();
            // Replaces an earlier retry, so there is at most one.
            given.retry = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(RETRY_AFTER).await;
                held.notify_changed();
            })));
        }
        let pinged = *gateway.pinged.lock();
        if given.ready && pinged > given.pinged {
            line.send(&message(to_gateway::Kind::Ping(Ping { id: pinged })), None).await?;
            given.pinged = pinged;
        }
        Ok(())
    }

    fn receive(
        held: &ServiceHandle<Self>,
        given: &mut SessionState,
        message: FromGateway,
        descriptor: Option<OwnedFd>,
    ) {
        let gateway = held.service();
        match message.kind {
            Some(from_gateway::Kind::Ready(Ready { address, problems })) => {
                let address = sanitize_report(&address).into_string();
                if !given.ready {
                    tracing::info!(address, "the gateway is ready");
                }
                let complaints: Vec<_> =
                    problems.iter().take(MAX_COMPLAINTS).map(|problem| sanitize_report(problem)).collect();
                for problem in &complaints {
                    tracing::warn!(%problem, "the gateway complains");
                }
                *gateway.address.lock() = Some(address.clone());
                held.update_status(|status| {
                    status.set_opened("", &address);
                    status.set_full("");
                    status.complaints = complaints;
                });
                given.ready = true;
            }
            Some(from_gateway::Kind::Refused(Refused { message, retryable })) => {
                held.update_status(|status| {
                    let problem = status.set_refused(&message, retryable);
                    tracing::error!(%problem, "the gateway cannot begin");
                })
            }
            Some(from_gateway::Kind::Listening(Listening { .. })) => match descriptor {
                // Only the first one: a process does not replace the socket of its successors.
                Some(socket)
                    if gateway.listener().is_none() && socket_acceptconn(&socket).unwrap_or(false) =>
                {
                    gateway.set_listener(socket);
                }
                _ => tracing::error!(
                    "the gateway handed up no listening socket, or a second one: it is not kept"
                ),
            },
            Some(from_gateway::Kind::NeedHost(NeedHost { id })) => given.needs_host = Some(id),
            Some(from_gateway::Kind::NeedAgent(NeedAgent { id })) => given.needs_agent = Some(id),
            Some(from_gateway::Kind::Pong(pong)) => {
                gateway.pong.send_replace(Some(pong));
            }
            // A newer gateway may send messages that this supervisor does not know.
            None => {}
        }
    }

    fn process_ended(&self) {
        self.host_link.disconnect();
        *self.address.lock() = None;
        self.pong.send_replace(None);
    }
}

fn message(kind: to_gateway::Kind) -> ToGateway {
    ToGateway { kind: Some(kind) }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
