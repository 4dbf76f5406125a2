//! The connection of a service of our own to the plugins: one at a time, on which the host API is served to a peer that may
//! only call.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_guard::Origin;

use super::host_connection::AgentConnection;
use crate::config::Role;
use crate::peer::{OwnService, Peer};

/// Serves the host API on a connection, to this peer.
pub(crate) type ServeConnection =
    Arc<dyn Fn(net::UnixStream, Peer) -> io::Result<AgentConnection> + Send + Sync>;

/// What serves the agent's connections.
#[derive(Clone)]
pub(crate) struct AgentEndpoint {
    /// Serves a connection.
    pub(crate) serve: ServeConnection,
    /// The gid of the agent's process.
    pub(crate) gid: u32,
}

/// The peer that the agent calls as. Even if it runs with the supervisor's uid, it is not an administrator.
/// Its calls count as made by a model.
fn agent_peer(uid: u32, gid: u32, pid: u32) -> Peer {
    Peer {
        uid,
        gid,
        pid,
        rights: Some((Role::Call, Origin::Model)),
        allowed: None,
        service: Some(OwnService::Agent),
        delegation: None,
    }
}

/// The peer for the uid, gid and pid of a service.
type ServicePeer = Box<dyn Fn(u32, u32, u32) -> Peer + Send + Sync>;

/// The current connection, if any.
pub(crate) struct HostLink {
    peer: ServicePeer,
    inner: Mutex<Inner>,
}

impl Default for HostLink {
    fn default() -> Self {
        Self::new(agent_peer)
    }
}

#[derive(Default)]
struct Inner {
    endpoint: Option<AgentEndpoint>,
    connection: Option<AgentConnection>,
}

impl HostLink {
    /// The link of a service that calls as this peer.
    pub(crate) fn new(peer: impl Fn(u32, u32, u32) -> Peer + Send + Sync + 'static) -> Self {
        Self { peer: Box::new(peer), inner: Mutex::default() }
    }

    /// The gid of the service's process; the supervisor's own without an endpoint.
    pub(crate) fn gid(&self) -> u32 {
        let own = || rustix::process::getegid().as_raw();
        self.inner.lock().endpoint.as_ref().map_or_else(own, |endpoint| endpoint.gid)
    }

    /// Serves connections by this endpoint from now on.
    pub(crate) fn set_endpoint(&self, way: AgentEndpoint) {
        self.inner.lock().endpoint = Some(way);
    }

    /// A new connection for the process with this uid and pid. It replaces and cuts an existing one: a
    /// process that asks again has lost the old one. Returns the other end; `None` while no endpoint is set.
    pub(crate) fn connect(&self, uid: u32, pid: u32) -> io::Result<Option<OwnedFd>> {
        let mut inner = self.inner.lock();
        inner.connection = None;
        let Some(way) = inner.endpoint.clone() else { return Ok(None) };
        let (ours, theirs) = net::UnixStream::pair()?;
        inner.connection = Some((way.serve)(ours, (self.peer)(uid, way.gid, pid))?);
        Ok(Some(theirs.into()))
    }

    /// Cuts the connection, because its process has ended.
    pub(crate) fn disconnect(&self) {
        self.inner.lock().connection = None;
    }

    /// Accepts no further connections. Requests in flight may finish within this time.
    pub(crate) async fn close(&self, within: Duration) {
        let connection = {
            let mut inner = self.inner.lock();
            inner.endpoint = None;
            inner.connection.take()
        };
        if let Some(connection) = connection {
            connection.close(within).await;
        }
    }
}
