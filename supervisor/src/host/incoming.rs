//! Connections as they come in: who is at the other end, and whether there is room for one more.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, stream};
use talon_listen::{Prompt, Throttle};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tonic::transport::server::Connected;

use super::peer::Peer;

/// Connections at once. Each costs a task and, while it transfers, up to its window; 256 clients are more than one
/// machine's people and agents. One more is closed at once, which its client reports as such.
pub const MAX_CONNECTIONS: usize = 256;
/// Connections of one uid at once: whatever one user does, others (an operator first of all) still get in.
pub const MAX_CONNECTIONS_PER_UID: usize = 192;
/// The wait after `accept` failed for want of descriptors or memory, which does not get better by trying at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

static CROWDED: Throttle = Throttle::new();
static NOT_LET_IN: Throttle = Throttle::new();

/// Tells who a peer is from what the kernel says about it; `None` for one that is not let in at all.
pub type Recognise = Arc<dyn Fn(&UCred) -> Option<Peer> + Send + Sync>;

/// Tells whether connections are accepted. Clones are the same.
#[derive(Debug, Clone)]
pub struct Pulse(mpsc::Sender<oneshot::Sender<()>>);

/// Who answers that.
pub(super) type Heart = mpsc::Receiver<oneshot::Sender<()>>;

impl Pulse {
    pub(super) fn new() -> (Self, Heart) {
        // One asks at a time, and whoever asks again before there was an answer waits for room.
        let (asks, heart) = mpsc::channel(1);
        (Self(asks), heart)
    }

    /// Whether the loop that accepts connections answers within this time.
    pub async fn answers(&self, within: Duration) -> bool {
        let (answers, answer) = oneshot::channel();
        let asked = async { self.0.send(answers).await.is_ok() && answer.await.is_ok() };
        timeout(within, asked).await.unwrap_or(false)
    }
}

/// One accepted connection.
type Connection = Prompt<Client>;

/// Who is at its other end, and its place among the connections.
#[derive(Debug)]
pub(super) struct Client {
    peer: Peer,
    _place: Place,
}

/// Counts connections, or requests, whole and by uid.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    most_per_uid: usize,
    by_uid: Mutex<HashMap<u32, usize>>,
}

/// One place; free again when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    uid: u32,
}

impl Places {
    /// So many, and so many of one uid.
    pub(super) fn new(most: usize, most_per_uid: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_uid, by_uid: Mutex::default() })
    }

    pub(super) fn take(self: &Arc<Self>, uid: u32) -> Option<Place> {
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = by_uid.values().sum();
        let own = by_uid.get(&uid).copied().unwrap_or(0);
        if all >= self.most || own >= self.most_per_uid {
            return None;
        }
        by_uid.insert(uid, own + 1);
        Some(Place { places: Arc::clone(self), uid })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_uid = self.places.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = by_uid.get_mut(&self.uid) {
            *own -= 1;
            if *own == 0 {
                by_uid.remove(&self.uid);
            }
        }
    }
}

/// The connections of a listener, for tonic. It never ends and never fails: what goes wrong with one connection is
/// logged and ends that connection.
pub(super) fn connections(
    listener: UnixListener,
    recognise: Recognise,
    heart: Heart,
) -> impl Stream<Item = Result<Connection, io::Error>> + Send {
    let places = Places::new(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_UID);
    stream::unfold(
        (listener, recognise, places, heart),
        |(listener, recognise, places, mut heart)| async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    Some(answer) = heart.recv() => {
                        // Whoever asked may have given up.
                        let _ = answer.send(());
                        continue;
                    }
                };
                match accepted {
                    Ok((stream, _)) => {
                        if let Some(connection) = admit(stream, &recognise, &places) {
                            return Some((Ok(connection), (listener, recognise, places, heart)));
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection on host.sock; see the open files limit");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        },
    )
}

fn admit(stream: UnixStream, recognise: &Recognise, places: &Arc<Places>) -> Option<Connection> {
    let peer = match stream.peer_cred() {
        Ok(credentials) => match recognise(&credentials) {
            Some(peer) => peer,
            None => {
                if let Some(unsaid) = NOT_LET_IN.word() {
                    let (uid, pid) = (credentials.uid(), credentials.pid());
                    tracing::warn!(
                        peer.uid = uid,
                        peer.pid = pid,
                        unsaid,
                        "host.sock was closed to a plugin"
                    );
                }
                return None;
            }
        },
        Err(error) => {
            tracing::warn!(%error, "a connection on host.sock was closed: its peer is unknown");
            return None;
        }
    };
    let Some(place) = places.take(peer.uid) else {
        if let Some(unsaid) = CROWDED.word() {
            tracing::warn!(
                peer.uid,
                peer.pid,
                unsaid,
                "a connection on host.sock was closed: {MAX_CONNECTIONS} connections, {MAX_CONNECTIONS_PER_UID} of \
                 one uid, are the most"
            );
        }
        return None;
    };
    tracing::debug!(peer.uid, peer.gid, peer.pid, role = peer.role_name(), "peer connected");
    Some(Prompt::new(stream, Client { peer, _place: place }))
}

impl Connected for Client {
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
        let (pulse, heart) = Pulse::new();
        assert!(!pulse.answers(SOON).await);
        drop(heart);
        assert!(!pulse.answers(SOON).await);
    }

    #[tokio::test]
    async fn one_that_accepts_connections_answers() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("host.sock")).unwrap();
        let (pulse, heart) = Pulse::new();
        let nobody: Recognise = Arc::new(|_| None);
        let mut connections = Box::pin(connections(listener, nobody, heart));
        tokio::select! {
            answers = pulse.answers(Duration::from_secs(10)) => assert!(answers),
            _ = futures_util::StreamExt::next(&mut connections) => unreachable!("nobody is let in"),
        }
    }

    #[test]
    fn one_uid_cannot_take_all_places() {
        let places = Places::new(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_UID);
        let held: Vec<Place> = std::iter::from_fn(|| places.take(1000)).collect();
        assert_eq!(held.len(), MAX_CONNECTIONS_PER_UID);
        let others: Vec<Place> = std::iter::from_fn(|| places.take(0)).collect();
        assert_eq!(others.len(), MAX_CONNECTIONS - MAX_CONNECTIONS_PER_UID);
        drop(held);
        assert!(places.take(1000).is_some());
        assert_eq!(places.by_uid.lock().unwrap().get(&1000), None, "a free place is forgotten");
    }
}
