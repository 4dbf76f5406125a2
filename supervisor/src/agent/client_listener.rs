//! `agent.sock`: identifies clients, enforces the connection limits, and waits until the agent accepts them.

use std::io;
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;

use talon_agent_settings::LimitKeys;
use talon_listen::{ConnectionLimiter, ConnectionPermit, LogThrottle};
use talon_proto::agent::AttachClient;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::forward::forward;
use super::supervisor::AgentSupervisor;
use crate::config::name_of;
use crate::peer::Peer;
use crate::socket::{Acceptor, PeerClassifier};

/// The socket's name in the runtime directory.
pub const SOCKET_NAME: &str = "agent.sock";
/// How long a connection waits for an agent that is starting: longer than the longest backoff, plus time to
/// open a database. Then it is closed, and its client reports that the agent does not answer.
const WAIT: Duration = Duration::from_secs(20);

static NO_ROLE: LogThrottle = LogThrottle::new();
static RESTRICTED: LogThrottle = LogThrottle::new();
static NO_USER_NAME: LogThrottle = LogThrottle::new();
static ATTACH_FAILED: LogThrottle = LogThrottle::new();

/// Accepts clients on `agent.sock` until it is dropped. Connections that the agent has received live on until
/// the agent ends.
pub struct ClientListener {
    connections: Arc<ConnectionLimiter>,
    _stop: DropGuard,
}

impl ClientListener {
    /// Starts to accept on a duplicate of the listener: clients that connect while nothing accepts wait in
    /// the listener's queue. Of `limits` those of connections hold. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn accept(
        listener: &net::UnixListener,
        recognise: PeerClassifier,
        keeper: AgentSupervisor,
        limits: &LimitKeys,
    ) -> io::Result<Self> {
        let listener = UnixListener::from_std(listener.try_clone()?)?;
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let connections =
            ConnectionLimiter::new(count(limits.connections), count(limits.connections_per_user));
        let doorman = Acceptor::new(SOCKET_NAME, recognise, Arc::clone(&connections));
        let accepting = async move {
            loop {
                let (stream, peer, place) = doorman.next(&listener).await;
                tokio::spawn(serve(stream, peer, place, keeper.clone()));
            }
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(accepting).await });
        Ok(Self { connections, _stop: stop.drop_guard() })
    }

    /// The limiter that counts its connections.
    #[must_use]
    pub fn connections(&self) -> Arc<ConnectionLimiter> {
        Arc::clone(&self.connections)
    }
}

/// Serves one connection until it ends.
async fn serve(stream: UnixStream, peer: Peer, place: ConnectionPermit, keeper: AgentSupervisor) {
    let _place = place;
    let closing = keeper.closing_token();
    // The lookup of names may use the network, and take long.
    let asked = closing.run_until_cancelled(timeout(WAIT, identify(&peer))).await;
    let Some(asked) = asked else { return };
    let late = |_| Err(ClientRejectedError::Unnamed(io::ErrorKind::TimedOut.into()));
    let about = match asked.unwrap_or_else(late) {
        Ok(about) => about,
        Err(why) => {
            if let Some(unsaid) = why.throttle().permit() {
                tracing::warn!(peer.uid, peer.pid, unsaid, "{SOCKET_NAME} was closed to {why}");
            }
            return;
        }
    };
    // Nothing is read from the client meanwhile; its data waits in the socket.
    match closing.run_until_cancelled(timeout(WAIT, attach(about, &keeper))).await {
        // The supervisor stops, or hands over.
        None => {}
        Some(Ok(Ok(agent))) => forward(stream, agent).await,
        Some(failed) => {
            let late = |_| Err(io::ErrorKind::TimedOut.into());
            let error = failed.unwrap_or_else(late).err();
            if let Some(unsaid) = ATTACH_FAILED.permit() {
                let state = keeper.status().state.as_str();
                tracing::warn!(
                    ?error,
                    state,
                    unsaid,
                    "a connection on {SOCKET_NAME} was closed: the agent did not take it"
                );
            }
        }
    }
}

/// Passes one end of a pair to the agent; returns the other once the agent has received it.
async fn attach(about: AttachClient, keeper: &AgentSupervisor) -> io::Result<UnixStream> {
    if !keeper.can_serve() {
        return Err(io::Error::other("it cannot be started"));
    }
    let (ours, theirs) = net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let (takes, taken) = oneshot::channel();
    keeper.attach(about, theirs.into(), Some(takes))?;
    taken.await.map_err(|_| io::ErrorKind::BrokenPipe)?;
    UnixStream::from_std(ours)
}

/// Why a client is rejected.
#[derive(Debug, thiserror::Error)]
enum ClientRejectedError {
    #[error("somebody without a role; see host.peers")]
    NoRole,
    /// The agent makes calls under its own identity, so a client that may use only some actions could reach
    /// all others through it.
    #[error("somebody who may call some actions alone; see host.peers")]
    Restricted,
    /// The user's name could not be looked up. Under another name, the wrong list in `agent.allow` would
    /// apply, or none.
    #[error(
        "a client whose name could not be looked up ({0}): see that `getent passwd` answers for their uid"
    )]
    Unnamed(#[source] io::Error),
}

impl ClientRejectedError {
    fn throttle(&self) -> &'static LogThrottle {
        match self {
            Self::NoRole => &NO_ROLE,
            Self::Restricted => &RESTRICTED,
            Self::Unnamed(_) => &NO_USER_NAME,
        }
    }
}

/// Identifies a client for the agent, or says why it is rejected.
async fn identify(peer: &Peer) -> Result<AttachClient, ClientRejectedError> {
    if peer.rights.is_none() {
        return Err(ClientRejectedError::NoRole);
    }
    if peer.allowed.is_some() {
        return Err(ClientRejectedError::Restricted);
    }
    let uid = peer.uid;
    let sender = tokio::task::spawn_blocking(move || sender(uid, name_of)).await;
    Ok(AttachClient {
        uid,
        gid: peer.gid,
        pid: peer.pid,
        sender: sender
            .unwrap_or_else(|gone| Err(io::Error::other(gone)))
            .map_err(ClientRejectedError::Unnamed)?,
        role: peer.role_name().to_owned(),
        origin: peer.origin_name().to_owned(),
        delegates: false,
    })
}

/// The name under which a client's sessions are stored: the user's name, or `uid:NUMBER` if the machine has
/// none. Blocking.
///
/// # Errors
/// When the lookup failed, so that it is unknown whether there is a name.
fn sender(uid: u32, name_of: impl FnOnce(u32) -> io::Result<Option<String>>) -> io::Result<String> {
    /// User names have at most 32 bytes locally, and 255 in a directory service.
    const MAX_NAME_BYTES: usize = 256;
    // Excludes names that look like another user's number, and names with characters that break a line.
    let plain = |name: &String| {
        !name.is_empty()
            && name.len() <= MAX_NAME_BYTES
            && !name.contains(|letter: char| letter == ':' || letter.is_control())
    };
    Ok(name_of(uid)?.filter(plain).unwrap_or_else(|| format!("uid:{uid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: HOST-17
    #[test]
    fn a_sender_is_a_name_or_a_number() {
        assert_eq!(sender(0, name_of).unwrap(), "root");
        assert_eq!(sender(7, |_| Ok(None)).unwrap(), "uid:7");
        assert_eq!(sender(7, |_| Ok(Some("uid:8".into()))).unwrap(), "uid:7");
    }

    // Promises: AGENT-56
    #[test]
    fn who_could_not_be_looked_up_is_nobody() {
        let error = sender(7, |_| Err(io::Error::other("the directory does not answer"))).unwrap_err();
        let told = ClientRejectedError::Unnamed(error).to_string();
        assert!(told.contains("the directory does not answer"), "{told}");
    }
}
