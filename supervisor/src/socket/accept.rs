//! Accepts connections: identifies the peer and enforces the connection limits.

use std::sync::Arc;
use std::time::Duration;

use talon_listen::{ConnectionLimiter, ConnectionPermit, LogThrottle};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};

use crate::config::Role;
use crate::peer::Peer;

/// The wait after `accept` failed for lack of descriptors or memory, since an immediate retry would fail
/// again.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

static AT_CAPACITY: LogThrottle = LogThrottle::new();
static REJECTED: LogThrottle = LogThrottle::new();

/// How many of the connections only administrators can use, so that an operator gets in whatever other users
/// do.
const RESERVED_FOR_ADMINISTRATORS: usize = 16;
/// How many connections peers without a role may have, and each uid of them: enough to be refused with the
/// reason, one request after the other. Further ones are closed at once.
const MAX_WITHOUT_ROLE: usize = 8;
const MAX_WITHOUT_ROLE_PER_UID: usize = 2;

/// Identifies a peer by its kernel credentials; `None` refuses the connection.
pub type PeerClassifier = Arc<dyn Fn(&UCred) -> Option<Peer> + Send + Sync>;

/// Accepts the connections of one socket: of known peers, within the limits.
pub(crate) struct Acceptor {
    /// The socket's name in the log.
    socket: &'static str,
    classifier: PeerClassifier,
    limiter: Arc<ConnectionLimiter>,
    /// For peers without a role.
    strangers: Arc<ConnectionLimiter>,
}

impl Acceptor {
    /// An acceptor for the socket of this name.
    pub(crate) fn new(
        socket: &'static str,
        classifier: PeerClassifier,
        limiter: Arc<ConnectionLimiter>,
    ) -> Self {
        let strangers = ConnectionLimiter::new(MAX_WITHOUT_ROLE, MAX_WITHOUT_ROLE_PER_UID);
        Self { socket, classifier, limiter, strangers }
    }

    /// The next accepted connection. An error of one connection is logged and ends only that connection. This
    /// is cancel safe: no connection is lost when the future is dropped.
    pub(crate) async fn next(&self, listener: &UnixListener) -> (UnixStream, Peer, ConnectionPermit) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if let Some((peer, place)) = self.admit(&stream) {
                        return (stream, peer, place);
                    }
                }
                Err(error) => {
                    let socket = self.socket;
                    tracing::warn!(%error, "cannot accept a connection on {socket}; see the open files limit");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(&self, stream: &UnixStream) -> Option<(Peer, ConnectionPermit)> {
        let socket = self.socket;
        let peer = match stream.peer_cred() {
            Ok(credentials) => match (self.classifier)(&credentials) {
                Some(peer) => peer,
                None => {
                    if let Some(unsaid) = REJECTED.permit() {
                        let (uid, pid) = (credentials.uid(), credentials.pid());
                        tracing::warn!(
                            peer.uid = uid,
                            peer.pid = pid,
                            unsaid,
                            "{socket} was closed to a plugin"
                        );
                    }
                    return None;
                }
            },
            Err(error) => {
                tracing::warn!(%error, "a connection on {socket} was closed: its peer is unknown");
                return None;
            }
        };
        let (limiter, reserved) = match peer.rights {
            Some((Role::Admin, _)) => (&self.limiter, 0),
            Some(_) => (&self.limiter, RESERVED_FOR_ADMINISTRATORS),
            None => (&self.strangers, 0),
        };
        let Ok(place) = limiter.acquire_beside(peer.uid, reserved) else {
            if let Some(unsaid) = AT_CAPACITY.permit() {
                let (most, most_per_uid) = limiter.limits();
                tracing::warn!(
                    peer.uid,
                    peer.pid,
                    unsaid,
                    role = peer.role_name(),
                    "a connection on {socket} was closed: {most} connections, {most_per_uid} of one uid, are the most for \
                     this role; end some of its clients, or see host.peers"
                );
            }
            return None;
        };
        tracing::debug!(peer.uid, peer.gid, peer.pid, role = peer.role_name(), "peer connected to {socket}");
        Some((peer, place))
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use talon_guard::Origin;
    use tokio::io::AsyncReadExt;

    use super::*;

    // Promises: HOST-23
    #[tokio::test]
    async fn the_last_connections_are_for_administrators() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.sock");
        let listener = UnixListener::bind(&path).unwrap();
        // Every connection comes from another uid, so that only the total counts.
        let role_and_uid = Arc::new(Mutex::new((Role::Call, 0)));
        let next = role_and_uid.clone();
        let classifier: PeerClassifier = Arc::new(move |_| {
            let (role, uid) = &mut *next.lock();
            *uid += 1;
            let rights = Some((*role, Origin::Program));
            Some(Peer { uid: *uid, gid: 0, pid: 1, rights, allowed: None, service: None, delegation: None })
        });
        let most = RESERVED_FOR_ADMINISTRATORS + 1;
        let acceptor = Acceptor::new("test.sock", classifier, ConnectionLimiter::new(most, most));
        let connect = || UnixStream::connect(&path);

        let _client = connect().await.unwrap();
        let first = acceptor.next(&listener).await;
        let mut refused = connect().await.unwrap();
        let never = async { acceptor.next(&listener).await };
        tokio::select! {
            _ = never => panic!("a client got a place of the administrators"),
            read = async { refused.read(&mut [0]).await } => assert_eq!(read.unwrap(), 0),
        }
        role_and_uid.lock().0 = Role::Admin;
        let mut held = Vec::new();
        for _ in 0..RESERVED_FOR_ADMINISTRATORS {
            let client = connect().await.unwrap();
            held.push((client, acceptor.next(&listener).await));
        }
        drop(first);
        drop(held);
    }
}
