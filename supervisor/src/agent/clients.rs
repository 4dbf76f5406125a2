//! `agent.sock`: who connects there, whether there is room, and the wait until the agent takes them.

use std::io;
use std::os::unix::net;
use std::time::Duration;

use talon_listen::{Place, Places, Throttle};
use talon_proto::agent::AttachClient;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::carry::carry;
use super::keeper::Keeper;
use crate::config::name_of;
use crate::host::{Doorman, Peer, Recognise};

/// The socket's name in the runtime directory.
pub const SOCKET_NAME: &str = "agent.sock";
/// Connections at once. Each is a person's terminal, a gateway or a script, and costs two tasks here and there; the agent runs
/// fewer turns at once than this. One more is closed at once, which its client reports as such.
pub const MAX_CLIENTS: usize = 64;
/// Connections of one uid at once: whatever one user does, others still get in.
pub const MAX_CLIENTS_PER_UID: usize = 48;
/// How long a connection waits for an agent that is being started: longer than the longest wait between two starts, with time to
/// open a database. Then it is closed, and its client says that the agent does not answer.
const WAIT: Duration = Duration::from_secs(20);

static NO_ROLE: Throttle = Throttle::new();
static RESTRICTED: Throttle = Throttle::new();
static UNNAMED: Throttle = Throttle::new();
static NOT_TAKEN: Throttle = Throttle::new();

/// Whoever is let in on `agent.sock`, for as long as this is held. Connections that were handed over live on until the agent ends.
pub struct Clients {
    _stop: DropGuard,
}

impl Clients {
    /// Begins to accept, on a duplicate of the listener: who connects while nobody accepts waits in its queue. Must be called
    /// within a tokio runtime.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn accept(listener: &net::UnixListener, recognise: Recognise, keeper: Keeper) -> io::Result<Self> {
        let listener = UnixListener::from_std(listener.try_clone()?)?;
        let doorman = Doorman::new(SOCKET_NAME, recognise, Places::new(MAX_CLIENTS, MAX_CLIENTS_PER_UID));
        let accepting = async move {
            loop {
                let (stream, peer, place) = doorman.next(&listener).await;
                tokio::spawn(serve(stream, peer, place, keeper.clone()));
            }
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(accepting).await });
        Ok(Self { _stop: stop.drop_guard() })
    }
}

/// One connection, until it ends.
async fn serve(stream: UnixStream, peer: Peer, place: Place, keeper: Keeper) {
    let _place = place;
    let closing = keeper.closing();
    // The system's names may be somewhere else, and take their time.
    let asked = closing.run_until_cancelled(timeout(WAIT, about(&peer))).await;
    let Some(asked) = asked else { return };
    let late = |_| Err(NotIn::Unnamed(io::ErrorKind::TimedOut.into()));
    let about = match asked.unwrap_or_else(late) {
        Ok(about) => about,
        Err(why) => {
            if let Some(unsaid) = why.throttle().word() {
                tracing::warn!(peer.uid, peer.pid, unsaid, "{SOCKET_NAME} was closed to {why}");
            }
            return;
        }
    };
    // Nothing is read of what it says meanwhile: it waits in its socket.
    match closing.run_until_cancelled(timeout(WAIT, hand_over(about, &keeper))).await {
        // The supervisor stops, or hands over.
        None => {}
        Some(Ok(Ok(agent))) => carry(stream, agent).await,
        Some(failed) => {
            let late = |_| Err(io::ErrorKind::TimedOut.into());
            let error = failed.unwrap_or_else(late).err();
            if let Some(unsaid) = NOT_TAKEN.word() {
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

/// One end of a pair, once the agent has the other.
async fn hand_over(about: AttachClient, keeper: &Keeper) -> io::Result<UnixStream> {
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

/// Who is not let in.
#[derive(Debug, thiserror::Error)]
enum NotIn {
    #[error("somebody without a role; see host.peers")]
    NoRole,
    /// The agent calls as itself: whoever may call but some actions would reach all others through it.
    #[error("somebody who may call some actions alone; see host.peers")]
    Restricted,
    /// Who it is could not be told. Under another name they would be held to another's list in `agent.allow`, or to none.
    #[error(
        "somebody whose name could not be looked up ({0}): see that `getent passwd` answers for their uid"
    )]
    Unnamed(#[source] io::Error),
}

impl NotIn {
    fn throttle(&self) -> &'static Throttle {
        match self {
            Self::NoRole => &NO_ROLE,
            Self::Restricted => &RESTRICTED,
            Self::Unnamed(_) => &UNNAMED,
        }
    }
}

/// Who somebody is, for the agent; or why they are not let in.
async fn about(peer: &Peer) -> Result<AttachClient, NotIn> {
    if peer.rights.is_none() {
        return Err(NotIn::NoRole);
    }
    if peer.allowed.is_some() {
        return Err(NotIn::Restricted);
    }
    let uid = peer.uid;
    let sender = tokio::task::spawn_blocking(move || sender(uid, name_of)).await;
    Ok(AttachClient {
        uid,
        gid: peer.gid,
        pid: peer.pid,
        sender: sender.unwrap_or_else(|gone| Err(io::Error::other(gone))).map_err(NotIn::Unnamed)?,
        role: peer.role_name().to_owned(),
        origin: peer.origin_name().to_owned(),
    })
}

/// Whose sessions somebody sees: the user's name, or `uid:NUMBER` where the machine has none. Blocking.
///
/// # Errors
/// When the names could not be asked. That says nothing about who it is.
fn sender(uid: u32, name_of: impl FnOnce(u32) -> io::Result<Option<String>>) -> io::Result<String> {
    /// User names are at most 32 bytes where people make them, and 255 where a directory does.
    const MAX_NAME_BYTES: usize = 256;
    // No name that could be taken for another user's number, or that a line could not hold.
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

    #[test]
    fn a_sender_is_a_name_or_a_number() {
        assert_eq!(sender(0, name_of).unwrap(), "root");
        assert_eq!(sender(7, |_| Ok(None)).unwrap(), "uid:7");
        assert_eq!(sender(7, |_| Ok(Some("uid:8".into()))).unwrap(), "uid:7");
    }

    #[test]
    fn who_could_not_be_looked_up_is_nobody() {
        let error = sender(7, |_| Err(io::Error::other("the directory does not answer"))).unwrap_err();
        let told = NotIn::Unnamed(error).to_string();
        assert!(told.contains("the directory does not answer"), "{told}");
    }
}
