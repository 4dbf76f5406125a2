//! Network access for plugins in a jail without network: a proxy in the supervisor, which connects only to the
//! hosts and ports of an allow-list.
//!
//! ```text
//! plugin ──unix socket────────── CONNECT host:port ─┐
//!        ──its own 127.0.0.1:3128─ HTTP ────────────┼─ Proxy ── allow-list ── lookup ── public? ── TCP ──► host
//!        ──an address that stands for a host ───────┘
//! ```
//!
//! The plugin's network namespace has a loopback interface and nothing else, so a plugin cannot bypass the
//! proxy. Sockets stay in the namespace that they were made in, so the supervisor serves those on the plugin's
//! loopback interface from outside, and no process is needed inside. The proxy sees names and counts bytes; it
//! does not inspect tunnels. Of plain `http` requests, it reads heads and passes on bodies.
//! `docs/egress.md` is the documentation for users.
//!
//! Everything is bounded: connections, the time of each phase, buffers, lookups, and the texts about denials.
//! Dropping the [`Proxy`] ends all of it.

mod connector;
mod counters;
mod deadline;
mod denial;
mod direct;
mod forward;
mod inner_addresses;
mod listener;
mod proxy_state;
mod serve;
mod target;
mod tunnel;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use talon_plugin_config::allow_list::AllowList;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::task::AbortOnDropHandle;

pub use connector::{CONNECT_TIMEOUT, LOOKUP_TIMEOUT, MAX_LOOKUPS};
pub use counters::Traffic;
pub use denial::{Denial, OnDenied};
pub use forward::MAX_RESPONSE_HEAD_BYTES;
pub use inner_addresses::{InnerAddresses, MAX_TUNNEL_ADDRESSES, PROXY_ADDRESS};
pub use listener::ListenerPurpose;
pub use proxy_state::{MAX_CONNECTIONS, SLOT_WAIT};
pub use serve::{HEAD_TIMEOUT, MAX_HEAD_BYTES};
pub use tunnel::IDLE_TIMEOUT;

use listener::accept_loop;
use proxy_state::ProxyState;

/// The proxy of one plugin process. Dropping it closes its sockets and its connections.
#[must_use = "dropping it ends it"]
pub struct Proxy {
    shared: Arc<ProxyState>,
    listener: Arc<UnixListener>,
    _task: AbortOnDropHandle<()>,
    inside: Mutex<Vec<InnerListener>>,
}

/// A socket on the plugin's loopback interface.
struct InnerListener {
    socket: Arc<TcpListener>,
    purpose: ListenerPurpose,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Serves the listener until the handle is dropped.
    ///
    /// If `only_uid` is set, connections from other uids are closed. `None` accepts every process that can
    /// reach the socket, for a supervisor that cannot give each plugin a uid.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        listener: UnixListener,
        allowed: AllowList,
        only_uid: Option<u32>,
        on_denied: OnDenied,
    ) -> Self {
        let shared = Arc::new(ProxyState::new(allowed, only_uid, on_denied));
        let listener = Arc::new(listener);
        let task = tokio::spawn(accept_loop(listener.clone(), ListenerPurpose::Requests, shared.clone()));
        Self { shared, listener, _task: AbortOnDropHandle::new(task), inside: Mutex::default() }
    }

    /// Serves another listener, on the plugin's loopback interface: only the plugin must be able to connect to
    /// it. The allow-list holds for it too.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn serve_inside(&self, listener: TcpListener, purpose: ListenerPurpose) {
        let socket = Arc::new(listener);
        let task = tokio::spawn(accept_loop(socket.clone(), purpose.clone(), self.shared.clone()));
        self.inside.lock().push(InnerListener { socket, purpose, _task: AbortOnDropHandle::new(task) });
    }

    /// A duplicate of the listening unix socket, for the proxy of another supervisor. This proxy keeps running.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn socket(&self) -> std::io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// Duplicates of the sockets on the plugin's loopback interface, with what they are for.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn sockets_inside(&self) -> std::io::Result<Vec<(OwnedFd, ListenerPurpose)>> {
        let duplicate =
            |inner: &InnerListener| Ok((inner.socket.as_fd().try_clone_to_owned()?, inner.purpose.clone()));
        self.inside.lock().iter().map(duplicate).collect()
    }

    /// The traffic so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.counters.snapshot()
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("traffic", &self.traffic()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
