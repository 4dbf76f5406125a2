//! Accepts connections: identifies the peer and enforces the connection limits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use talon_listen::{ConnectionLimiter, ConnectionPermit, LogThrottle, PrefaceTimeout};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tonic::transport::server::Connected;

use super::peer::Peer;
use super::socket::SOCKET_NAME;

/// Maximum concurrent connections. Each costs a task and, during a transfer, up to its window. 256 clients
/// are more than the users and agents of one machine. A further connection is closed at once, which its
/// client reports.
pub const MAX_CONNECTIONS: usize = 256;
/// Maximum concurrent connections of one uid, so that one user cannot lock out others (an operator first of
/// all).
pub const MAX_CONNECTIONS_PER_UID: usize = 192;
/// The wait after `accept` failed for lack of descriptors or memory, since an immediate retry would fail
/// again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

static AT_CAPACITY: LogThrottle = LogThrottle::new();
static REJECTED: LogThrottle = LogThrottle::new();

/// Identifies a peer by its kernel credentials; `None` refuses the connection.
pub type PeerClassifier = Arc<dyn Fn(&UCred) -> Option<Peer> + Send + Sync>;

/// Checks whether the accept loop is alive. Clones share state.
#[derive(Debug, Clone)]
pub struct LivenessProbe(mpsc::Sender<oneshot::Sender<()>>);

/// The accept loop's end of the probe.
pub(super) type LivenessRequests = mpsc::Receiver<oneshot::Sender<()>>;

impl LivenessProbe {
    pub(super) fn new() -> (Self, LivenessRequests) {
        // One probe at a time; further ones wait until it is answered.
        let (asks, heart) = mpsc::channel(1);
        (Self(asks), heart)
    }

    /// Whether the accept loop answers within this time.
    pub async fn answers(&self, within: Duration) -> bool {
        let (answers, answer) = oneshot::channel();
        let asked = async { self.0.send(answers).await.is_ok() && answer.await.is_ok() };
        timeout(within, asked).await.unwrap_or(false)
    }
}

/// One accepted connection.
pub(super) type Connection = PrefaceTimeout<ConnectedClient>;

/// The peer of a connection, and a guard that is dropped when the connection ends (such as its connection
/// permit).
pub(super) struct ConnectedClient {
    peer: Peer,
    _guard: Box<dyn Send + Sync>,
}

impl ConnectedClient {
    pub(super) fn new(peer: Peer, held: impl Send + Sync + 'static) -> Self {
        Self { peer, _guard: Box::new(held) }
    }
}

/// Accepts the connections of one socket: of known peers, within the limits.
pub(crate) struct Acceptor {
    /// The socket's name in the log.
    socket: &'static str,
    classifier: PeerClassifier,
    limiter: Arc<ConnectionLimiter>,
}

/// The connections of a listener. The stream never ends and never fails: an error of one connection is logged
/// and ends only that connection.
pub(super) fn connections(
    listener: UnixListener,
    recognise: PeerClassifier,
    heart: LivenessRequests,
) -> impl Stream<Item = Connection> + Send {
    let places = ConnectionLimiter::new(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_UID);
    let doorman = Acceptor::new(SOCKET_NAME, recognise, places);
    stream::unfold((listener, doorman, heart), |(listener, doorman, mut heart)| async move {
        loop {
            tokio::select! {
                (stream, peer, place) = doorman.next(&listener) => {
                    let connection = PrefaceTimeout::new(stream, ConnectedClient::new(peer, place));
                    return Some((connection, (listener, doorman, heart)));
                }
                Some(answer) = heart.recv() => {
                    // The caller may have stopped waiting.
                    let _ = answer.send(());
                }
            }
        }
    })
}

impl Acceptor {
    /// An acceptor for the socket of this name.
    pub(crate) fn new(
        socket: &'static str,
        classifier: PeerClassifier,
        limiter: Arc<ConnectionLimiter>,
    ) -> Self {
        Self { socket, classifier, limiter }
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
        let Some(place) = self.limiter.acquire(peer.uid) else {
            if let Some(unsaid) = AT_CAPACITY.permit() {
                let (most, most_per_uid) = self.limiter.limits();
                tracing::warn!(
                    peer.uid,
                    peer.pid,
                    unsaid,
                    "a connection on {socket} was closed: {most} connections, {most_per_uid} of one uid, are the most"
                );
            }
            return None;
        };
        tracing::debug!(peer.uid, peer.gid, peer.pid, role = peer.role_name(), "peer connected to {socket}");
        Some((peer, place))
    }
}

impl Connected for ConnectedClient {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_look_does_not_answer_nor_does_one_that_is_gone() {
        let (pulse, heart) = LivenessProbe::new();
        assert!(!pulse.answers(SOON).await);
        drop(heart);
        assert!(!pulse.answers(SOON).await);
    }

    #[tokio::test]
    async fn one_that_accepts_connections_answers() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("host.sock")).unwrap();
        let (pulse, heart) = LivenessProbe::new();
        let nobody: PeerClassifier = Arc::new(|_| None);
        let mut connections = Box::pin(connections(listener, nobody, heart));
        tokio::select! {
            answers = pulse.answers(Duration::from_secs(10)) => assert!(answers),
            _ = futures_util::StreamExt::next(&mut connections) => unreachable!("nobody is let in"),
        }
    }
}
