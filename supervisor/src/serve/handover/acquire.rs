//! The successor's side: takes over state, and confirms it.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use talon_plugin::Registry;
use talon_plugin::handover::ReceivedHandover;
use talon_plugin_config::PluginName;
use talon_proto::host::HandOverRequest;
use talon_proto::host::host_client::HostClient;
use talon_wire::Connector;
use tonic::Code;
use tonic::transport::Endpoint;

use super::document::{SupervisorHandover, UnpackError};
use super::rendezvous::{self, RendezvousError};
use super::wire::{HandoverConnection, HandoverConnectionError, Kind};
use crate::agent;
use crate::config::Config;
use crate::dispatch::Dispatcher;
use crate::notify::Manager;
use crate::serve::inherited::InheritedSockets;
use crate::socket::{FileIdentity, HOST_SOCKET_NAME, HostSocket, SocketFile};
use talon_listen::ShortPath;

/// How much longer than the grace period the old supervisor may take to hand over. It lets calls finish for
/// its grace period (which is configured, and probably equal to ours), closes its database and writes
/// everything down.
const OFFER_SLACK: Duration = Duration::from_secs(30);
/// How long the old supervisor may take to confirm that it has released everything, which is a single
/// message.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// Timeout of a request on `host.sock`.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// Why the takeover from a running supervisor failed. That one continues. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeoverError {
    /// It refused.
    #[error("the supervisor that runs does not hand over: {0}")]
    Refused(String),
    /// It did not answer.
    #[error("the supervisor that runs could not be asked: {0}; look at its log")]
    Ask(String),
    /// It accepted, but the handover failed.
    #[error("the takeover failed, and the running supervisor continues: {0}")]
    Failed(String),
}

/// State that another supervisor left or offers.
#[derive(Debug, Default)]
pub(in crate::serve) struct AcquiredState {
    pub(in crate::serve) socket: Option<HostSocket>,
    pub(in crate::serve) agent_socket: Option<HostSocket>,
    pub(in crate::serve) gateway_listener: Option<OwnedFd>,
    processes: Option<ReceivedHandover>,
    quarantined: Vec<(String, u32)>,
    source: HandoverSource,
}

/// Where the state came from, and so who is to be notified once it is taken over.
#[derive(Debug, Default)]
enum HandoverSource {
    /// Nowhere: a normal start.
    #[default]
    None,
    /// The service manager's store, which keeps the bundle until it is asked to remove it.
    Store,
    /// A running supervisor.
    Supervisor(HandoverConnection, u32),
}

/// Looks for state to take over: first the unit's `host.sock`, then the manager's store, then (if requested)
/// the offer of a running supervisor.
pub(in crate::serve) async fn acquire(
    sockets: &mut InheritedSockets,
    config: &Config,
    takeover: bool,
    manager: &Manager,
) -> Result<AcquiredState, TakeoverError> {
    let runtime_dir = &config.runtime_dir;
    let mut arrival = AcquiredState::default();
    if let Some(bundle) = latest(std::mem::take(&mut sockets.handover)) {
        match SupervisorHandover::open(&bundle) {
            Ok(received) => {
                arrival.take(received, runtime_dir);
                arrival.source = HandoverSource::Store;
            }
            Err(error) => {
                tracing::error!(%error, "what the store kept cannot be used: every plugin is started anew");
                manager.remove_stored();
            }
        }
    } else if takeover {
        match ask(runtime_dir).await? {
            Some((line, pid)) => arrival.receive_offer(line, pid, config).await?,
            None => {
                tracing::warn!("there is no supervisor to take over from: this is a start like any other")
            }
        }
    }
    if let Some(listener) = sockets.gateway.take() {
        arrival.gateway_listener = Some(listener);
    }
    if let Some(listener) = sockets.host.take() {
        arrival.socket = Some(HostSocket { listener, file: None });
    }
    Ok(arrival)
}

/// The latest bundle. There are several if successors failed to take over.
fn latest(mut bundles: Vec<OwnedFd>) -> Option<OwnedFd> {
    if bundles.len() > 1 {
        tracing::warn!(count = bundles.len(), "the store kept more than one bundle: the last one counts");
    }
    bundles.pop()
}

/// Asks the running supervisor for a handover; `None` if there is none.
async fn ask(runtime_dir: &Path) -> Result<Option<(HandoverConnection, u32)>, TakeoverError> {
    let socket = runtime_dir.join(HOST_SOCKET_NAME);
    let connector = Connector::new(move || {
        let socket = socket.clone();
        async move {
            let short = ShortPath::of_file(&socket)?;
            tokio::net::UnixStream::connect(short.as_path()).await
        }
    });
    let endpoint =
        Endpoint::from_static("http://host.invalid").timeout(ASK_WITHIN).connect_timeout(ASK_WITHIN);
    // No process listens there. If another process holds the directory, its lock will show that.
    let Ok(channel) = connector.connect(endpoint).await else { return Ok(None) };
    HostClient::new(channel).hand_over(HandOverRequest {}).await.map_err(|status| match status.code() {
        Code::FailedPrecondition | Code::PermissionDenied => {
            TakeoverError::Refused(status.message().to_owned())
        }
        Code::Unimplemented => {
            TakeoverError::Refused("it is of a version that cannot; stop it, and start this one".to_owned())
        }
        _ => TakeoverError::Ask(status.message().to_owned()),
    })?;
    let runtime_dir = runtime_dir.to_owned();
    let joined = tokio::task::spawn_blocking(move || rendezvous::connect_to_rendezvous(&runtime_dir)).await;
    let (socket, pid) = match joined {
        Ok(joined) => joined.map_err(|error: RendezvousError| takeover_failed(&error))?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let line = HandoverConnection::new(socket).map_err(|error| takeover_failed(&error))?;
    Ok(Some((line, pid)))
}

impl AcquiredState {
    async fn receive_offer(
        &mut self,
        line: HandoverConnection,
        pid: u32,
        config: &Config,
    ) -> Result<(), TakeoverError> {
        let runtime_dir = &config.runtime_dir;
        let grace = config.plugins.tools.lifecycle.grace_period.get();
        tracing::info!(pid, "taking over from the supervisor that runs");
        let bundle =
            line.receive(Kind::Offer, grace + OFFER_SLACK).await.map_err(|error| takeover_failed(&error))?;
        let received =
            bundle.ok_or_else(|| takeover_failed(&HandoverConnectionError::Unexpected)).and_then(|bundle| {
                SupervisorHandover::open(&bundle).map_err(|error: UnpackError| takeover_failed(&error))
            });
        match received {
            Ok(received) => self.take(received, runtime_dir),
            Err(error) => {
                let _ = line.failed(&error.to_string()).await;
                return Err(error);
            }
        }
        self.source = HandoverSource::Supervisor(line, pid);
        Ok(())
    }

    fn take(&mut self, received: SupervisorHandover, runtime_dir: &Path) {
        let SupervisorHandover { pid, talon, host, file, agent, gateway, quarantined, processes } = received;
        tracing::info!(pid, version = %talon_sanitize::Raw::from(talon.as_str()).line(), "an earlier supervisor handed over");
        // If the file cannot be found, the next supervisor removes the dead socket.
        let adopt = |name, file: Option<FileIdentity>| {
            file.and_then(|identity| SocketFile::adopt(runtime_dir, name, identity).ok())
        };
        self.socket = Some(HostSocket { listener: host, file: adopt(HOST_SOCKET_NAME, file) });
        self.agent_socket = agent.map(|(listener, file)| {
            let file = adopt(agent::SOCKET_NAME, file);
            HostSocket { listener, file }
        });
        self.gateway_listener = gateway;
        self.quarantined = quarantined;
        self.processes = Some(processes);
    }

    /// The processes, for the registry; only once.
    pub(in crate::serve) fn processes(&mut self) -> Option<ReceivedHandover> {
        self.processes.take()
    }

    /// Whether there was any state to take over.
    pub(in crate::serve) fn is_succession(&self) -> bool {
        !matches!(self.source, HandoverSource::None)
    }

    /// Restores the quarantine of plugins.
    pub(in crate::serve) fn quarantine(&mut self, dispatcher: &Dispatcher) {
        for (name, neutralised) in self.quarantined.drain(..) {
            if let Ok(name) = PluginName::new(&name) {
                dispatcher.quarantine(&name, neutralised);
            }
        }
    }

    /// Confirms the takeover: the source may release everything.
    pub(in crate::serve) async fn confirm(
        &mut self,
        registry: &Registry,
        manager: &Manager,
    ) -> Result<(), TakeoverError> {
        match std::mem::take(&mut self.source) {
            HandoverSource::None => return Ok(()),
            HandoverSource::Store => manager.remove_stored(),
            HandoverSource::Supervisor(line, pid) => {
                line.taken().await.map_err(|error| takeover_failed(&error))?;
                line.receive(Kind::Gone, GONE_WITHIN).await.map_err(|error| takeover_failed(&error))?;
                tracing::info!(pid, "taken over");
            }
        }
        let adopted = registry.adoption_counts();
        metrics::gauge!("talon_taken_over_processes").set(adopted.taken_over as f64);
        tracing::info!(handed = adopted.received, taken_over = adopted.taken_over, "plugins run on");
        Ok(())
    }

    /// Reports that the takeover failed.
    pub(in crate::serve) async fn reject(self, why: &str) {
        if let HandoverSource::Supervisor(line, _) = self.source {
            // The other supervisor also continues if this message is lost.
            let _ = line.failed(why).await;
        }
    }
}

fn takeover_failed(error: &dyn std::error::Error) -> TakeoverError {
    TakeoverError::Failed(error.to_string())
}
