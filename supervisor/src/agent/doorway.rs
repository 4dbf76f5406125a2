//! The agent's way to the plugins: one connection at a time on which the host API is served, for a peer that may call and no more.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talon_guard::Origin;

use crate::config::Role;
use crate::host::{Alone, Peer};

/// Serves the host API on a connection, to this peer.
pub(crate) type Serve = Arc<dyn Fn(net::UnixStream, Peer) -> io::Result<Alone> + Send + Sync>;

/// Where connections lead, and for whom they are.
#[derive(Clone)]
pub(crate) struct Doorway {
    /// What serves them.
    pub(crate) serve: Serve,
    /// The gid of the agent's process.
    pub(crate) gid: u32,
}

/// As whom the agent calls, whatever uid it has: where it runs with our own, it is no administrator for that. What it calls is
/// what a model wants.
fn peer(uid: u32, gid: u32, pid: u32) -> Peer {
    Peer { uid, gid, pid, rights: Some((Role::Call, Origin::Model)), allowed: None, agent: true }
}

/// The connection there is.
#[derive(Default)]
pub(super) struct Door {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    way: Option<Doorway>,
    connection: Option<Alone>,
}

impl Door {
    /// From now on connections lead there.
    pub(super) fn open(&self, way: Doorway) {
        self.inner().way = Some(way);
    }

    /// A new connection for the process of this uid and pid, in place of the one there was, which is cut: whoever asks for one has
    /// lost it. Gives the other end; `None` while the door is closed.
    pub(super) fn connect(&self, uid: u32, pid: u32) -> io::Result<Option<OwnedFd>> {
        let mut inner = self.inner();
        inner.connection = None;
        let Some(way) = inner.way.clone() else { return Ok(None) };
        let (ours, theirs) = net::UnixStream::pair()?;
        inner.connection = Some((way.serve)(ours, peer(uid, way.gid, pid))?);
        Ok(Some(theirs.into()))
    }

    /// Cuts the connection: whoever had it is gone.
    pub(super) fn cut(&self) {
        self.inner().connection = None;
    }

    /// Lets nobody in any more. Requests under way may finish within this time.
    pub(super) async fn close(&self, within: Duration) {
        let connection = {
            let mut inner = self.inner();
            inner.way = None;
            inner.connection.take()
        };
        if let Some(connection) = connection {
            connection.close(within).await;
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
