//! The connections of `host.sock`, and the probe of its accept loop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use talon_listen::{ConnectionLimiter, PrefaceTimeout};
use talon_wire::frames::FrameLimits;
use talon_wire::{BusyFlag, LazyWritable};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tonic::transport::server::Connected;

use super::limits::count;
use crate::config::HostLimits;
use crate::peer::Peer;
use crate::socket::{Acceptor, HOST_SOCKET_NAME, PeerClassifier};

/// The limiter of the connections of one server. A further connection is closed at once, which its client reports.
pub(super) fn connection_limiter(limits: &HostLimits) -> Arc<ConnectionLimiter> {
    ConnectionLimiter::new(count(limits.connections), count(limits.connections_per_user))
}

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
pub(super) type Connection = PrefaceTimeout<ConnectedClient, LazyWritable>;

/// The peer of a connection, and a guard that is dropped when the connection ends (such as its connection
/// permit).
pub(super) struct ConnectedClient {
    peer: Peer,
    busy: BusyFlag,
    _guard: Box<dyn Send + Sync>,
}

impl ConnectedClient {
    pub(super) fn new(peer: Peer, held: impl Send + Sync + 'static) -> Self {
        Self { peer, busy: BusyFlag::default(), _guard: Box::new(held) }
    }

    /// The flag that says whether its connection has many requests.
    pub(super) fn busy(&self) -> &BusyFlag {
        &self.busy
    }
}

/// A connection of this client. The kernel wakes its task for answers that the client has read only while the
/// socket is full, or while the connection is not busy.
///
/// # Errors
/// When the socket cannot be registered with the runtime.
pub(super) fn serve_client(
    stream: UnixStream,
    frames: FrameLimits,
    client: ConnectedClient,
) -> io::Result<Connection> {
    let mut stream = LazyWritable::new(stream)?;
    stream.set_busy_flag(client.busy());
    let uid = client.peer.uid;
    Ok(PrefaceTimeout::with_frames(stream, uid, frames, client))
}

/// The connections of a listener. The stream never ends and never fails: an error of one connection is logged
/// and ends only that connection.
pub(super) fn connections(
    listener: UnixListener,
    recognise: PeerClassifier,
    places: Arc<ConnectionLimiter>,
    heart: LivenessRequests,
    frames: FrameLimits,
) -> impl Stream<Item = Connection> + Send {
    let doorman = Acceptor::new(HOST_SOCKET_NAME, recognise, places);
    stream::unfold((listener, doorman, heart), move |(listener, doorman, mut heart)| async move {
        loop {
            tokio::select! {
                (stream, peer, place) = doorman.next(&listener) => {
                    match serve_client(stream, frames, ConnectedClient::new(peer, place)) {
                        Ok(connection) => return Some((connection, (listener, doorman, heart))),
                        Err(error) => tracing::warn!(%error, "a connection was closed: it cannot be watched; see the open files limit"),
                    }
                }
                Some(answer) = heart.recv() => {
                    // The caller may have stopped waiting.
                    let _ = answer.send(());
                }
            }
        }
    })
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

    // Promises: HANDOVER-38
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
        let limiter = connection_limiter(&HostLimits::default());
        let mut connections = Box::pin(connections(listener, nobody, limiter, heart, FrameLimits::default()));
        tokio::select! {
            answers = pulse.answers(Duration::from_secs(10)) => assert!(answers),
            _ = futures_util::StreamExt::next(&mut connections) => unreachable!("nobody is let in"),
        }
    }
}
