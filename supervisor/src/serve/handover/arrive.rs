//! The successor's side: what there is to take over, and saying that it is done.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use talon_plugin::handover::Inherited;
use talon_plugin::{PluginName, Registry};
use talon_proto::host::HandOverRequest;
use talon_proto::host::host_client::HostClient;
use tonic::Code;
use tonic::transport::Endpoint;

use super::document::{Received, UnpackError};
use super::meeting::{self, MeetError};
use super::wire::{Kind, Line, LineError};
use crate::agent;
use crate::config::Config;
use crate::door::Door;
use crate::host::{FileIdentity, HostSocket, SOCKET_NAME, SocketFile};
use crate::serve::inherited::Sockets;
use crate::serve::notify::Manager;
use talon_listen::ShortPath;

/// How long the old supervisor may take to hand over once we are there. It lets calls finish for its grace period, closes its
/// database and writes everything down; the grace period is an operator's choice, and ours is as likely as not the same.
const OFFER_SLACK: Duration = Duration::from_secs(30);
/// How long the old supervisor may take to say that it has let go. It only says so.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// How long an answer on `host.sock` may take.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// Why a supervisor that runs was not taken over from. It goes on. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeoverError {
    /// It does not want to.
    #[error("the supervisor that runs does not hand over: {0}")]
    Refused(String),
    /// It did not answer.
    #[error("the supervisor that runs could not be asked: {0}; look at its log")]
    Ask(String),
    /// It was agreed upon, and came to nothing.
    #[error("taking over came to nothing, and the supervisor that runs goes on: {0}")]
    Failed(String),
}

/// What another supervisor left, or offers.
#[derive(Debug, Default)]
pub(in crate::serve) struct Arrival {
    pub(in crate::serve) socket: Option<HostSocket>,
    pub(in crate::serve) agent_socket: Option<HostSocket>,
    processes: Option<Inherited>,
    quarantined: Vec<(String, u32)>,
    way: Way,
}

/// Whom to tell that it is taken.
#[derive(Debug, Default)]
enum Way {
    /// Nobody: it is a start like any other.
    #[default]
    None,
    /// The manager, which keeps the parcel until it hears so.
    Store,
    /// The old one.
    Line(Line, u32),
}

/// Looks what there is. `host.sock` of a unit comes first, then what the store kept, then what a running supervisor offers, if
/// that is asked for.
pub(in crate::serve) async fn arrive(
    sockets: &mut Sockets,
    config: &Config,
    takeover: bool,
    manager: &Manager,
) -> Result<Arrival, TakeoverError> {
    let runtime_dir = &config.runtime_dir;
    let mut arrival = Arrival::default();
    if let Some(parcel) = latest(std::mem::take(&mut sockets.handover)) {
        match Received::open(&parcel) {
            Ok(received) => {
                arrival.take(received, runtime_dir);
                arrival.way = Way::Store;
            }
            Err(error) => {
                tracing::error!(%error, "what the store kept cannot be used: every plugin is started anew");
                manager.forget_stored();
            }
        }
    } else if takeover {
        match ask(runtime_dir).await? {
            Some((line, pid)) => arrival.offered(line, pid, config).await?,
            None => {
                tracing::warn!("there is no supervisor to take over from: this is a start like any other")
            }
        }
    }
    if let Some(listener) = sockets.host.take() {
        arrival.socket = Some(HostSocket { listener, file: None });
    }
    Ok(arrival)
}

/// Several are there if one supervisor after the other handed over and none took up: the last is what there is now.
fn latest(mut parcels: Vec<OwnedFd>) -> Option<OwnedFd> {
    if parcels.len() > 1 {
        tracing::warn!(count = parcels.len(), "the store kept more than one parcel: the last one counts");
    }
    parcels.pop()
}

/// Asks the supervisor that runs; `None` if there is none.
async fn ask(runtime_dir: &Path) -> Result<Option<(Line, u32)>, TakeoverError> {
    let socket = runtime_dir.join(SOCKET_NAME);
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move {
            let short = ShortPath::of_file(&socket)?;
            let stream = tokio::net::UnixStream::connect(short.as_path()).await?;
            Ok::<_, std::io::Error>(hyper_util::rt::TokioIo::new(stream))
        }
    });
    let endpoint =
        Endpoint::from_static("http://host.invalid").timeout(ASK_WITHIN).connect_timeout(ASK_WITHIN);
    // Nobody listens there, or never did. Whoever else holds the directory is found by its lock.
    let Ok(channel) = endpoint.connect_with_connector(connector).await else { return Ok(None) };
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
    let joined = tokio::task::spawn_blocking(move || meeting::join(&runtime_dir)).await;
    let (socket, pid) = match joined {
        Ok(joined) => joined.map_err(|error: MeetError| failed(&error))?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let line = Line::new(socket).map_err(|error| failed(&error))?;
    Ok(Some((line, pid)))
}

impl Arrival {
    async fn offered(&mut self, line: Line, pid: u32, config: &Config) -> Result<(), TakeoverError> {
        let runtime_dir = &config.runtime_dir;
        let grace = config.plugins.tools.lifecycle.grace_period.get();
        tracing::info!(pid, "taking over from the supervisor that runs");
        let parcel = line.hear(Kind::Offer, grace + OFFER_SLACK).await.map_err(|error| failed(&error))?;
        let received = parcel
            .ok_or_else(|| failed(&LineError::Unexpected))
            .and_then(|parcel| Received::open(&parcel).map_err(|error: UnpackError| failed(&error)));
        match received {
            Ok(received) => self.take(received, runtime_dir),
            Err(error) => {
                let _ = line.failed(&error.to_string()).await;
                return Err(error);
            }
        }
        self.way = Way::Line(line, pid);
        Ok(())
    }

    fn take(&mut self, received: Received, runtime_dir: &Path) {
        let Received { pid, talon, host, file, agent, quarantined, processes } = received;
        tracing::info!(pid, version = %talon_sanitize::Raw::from(talon.as_str()).line(), "an earlier supervisor handed over");
        // A file that cannot be found is removed by whoever finds it dead.
        let adopt = |name, file: Option<FileIdentity>| {
            file.and_then(|identity| SocketFile::adopt(runtime_dir, name, identity).ok())
        };
        self.socket = Some(HostSocket { listener: host, file: adopt(SOCKET_NAME, file) });
        self.agent_socket = agent.map(|(listener, file)| {
            let file = adopt(agent::SOCKET_NAME, file);
            HostSocket { listener, file }
        });
        self.quarantined = quarantined;
        self.processes = Some(processes);
    }

    /// The processes, for the registry; once.
    pub(in crate::serve) fn processes(&mut self) -> Option<Inherited> {
        self.processes.take()
    }

    /// Whether there was anything.
    pub(in crate::serve) fn is_succession(&self) -> bool {
        !matches!(self.way, Way::None)
    }

    /// Sets apart again who was set apart.
    pub(in crate::serve) fn quarantine(&mut self, door: &Door) {
        for (name, neutralised) in self.quarantined.drain(..) {
            if let Ok(name) = PluginName::new(&name) {
                door.quarantine(&name, neutralised);
            }
        }
    }

    /// Everything is ours now: whoever has it still may let go.
    pub(in crate::serve) async fn taken(
        &mut self,
        registry: &Registry,
        manager: &Manager,
    ) -> Result<(), TakeoverError> {
        match std::mem::take(&mut self.way) {
            Way::None => return Ok(()),
            Way::Store => manager.forget_stored(),
            Way::Line(line, pid) => {
                line.taken().await.map_err(|error| failed(&error))?;
                line.hear(Kind::Gone, GONE_WITHIN).await.map_err(|error| failed(&error))?;
                tracing::info!(pid, "taken over");
            }
        }
        let adopted = registry.adopted();
        metrics::gauge!("talon_taken_over_processes").set(adopted.taken_over as f64);
        tracing::info!(handed = adopted.handed, taken_over = adopted.taken_over, "plugins run on");
        Ok(())
    }

    /// It came to nothing.
    pub(in crate::serve) async fn failed(self, why: &str) {
        if let Way::Line(line, _) = self.way {
            // It goes on also without a word.
            let _ = line.failed(why).await;
        }
    }
}

fn failed(error: &dyn std::error::Error) -> TakeoverError {
    TakeoverError::Failed(error.to_string())
}
