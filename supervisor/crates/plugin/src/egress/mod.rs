//! The way out of a plugin that has no network: one unix socket, and behind it a proxy of the supervisor's that
//! connects to the hosts and ports of an allow-list and to nothing else.
//!
//! ```text
//! plugin ──unix socket── Proxy: CONNECT host:port ── allow-list ── lookup ── public? ── TCP ──► host
//! ```
//!
//! The plugin's own network namespace stays empty, so there is nothing to get around. The proxy sees names and
//! counts bytes; it does not look into tunnels. `docs/egress.md` is the page for people.
//!
//! Everything is bounded: places, time of each phase, buffers, lookups, and what is said of a denial. Dropping the
//! [`Proxy`] ends all of it.

mod allow;
mod counters;
mod place;
mod public;
mod reach;
mod serve;
mod tunnel;

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use talon_sanitize::Sanitized;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

pub use allow::{AllowList, EgressError, MAX_ENTRIES};
pub use counters::Traffic;
pub use place::Problem;
pub use reach::{CONNECT_TIMEOUT, LOOKUP_TIMEOUT, MAX_LOOKUPS};
pub use serve::{HEAD_TIMEOUT, MAX_HEAD_BYTES};
pub use tunnel::IDLE_TIMEOUT;

use counters::Counters;
use reach::Reach;

/// The environment variable that tells a plugin where the proxy's socket is.
pub const SOCKET_VARIABLE: &str = "TALON_PROXY_SOCKET";

/// Connections of one plugin at once. 64: as many as its calls may wait (`guard.queue`), with a connection each.
/// A further one waits for [`PLACE_WAIT`], then it is answered with 503; those behind it wait in the kernel.
pub const MAX_CONNECTIONS: usize = 64;

/// How long a connection waits for a place: a burst passes, and a plugin that leaks connections learns it.
pub const PLACE_WAIT: Duration = Duration::from_secs(10);

/// How long accepting rests when the kernel refuses, for want of descriptors: some other connection has to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Fits into the buffer of a fresh socket, so that nobody has to wait until it is read.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    connection: close\r\n\r\nall 64 connections of this plugin are in use: close some, or try again later\n";

/// A request for what the plugin may not reach. Its text names the entry that would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denied {
    /// No entry of the list allows it.
    NotListed {
        /// `host:port`, checked and bounded.
        place: Sanitized,
    },
    /// The name is allowed, and leads to this machine or the network around it.
    Inside {
        /// `host:port`, checked and bounded.
        place: Sanitized,
        /// Where it leads.
        address: SocketAddr,
    },
}

/// Who is told of each denial, from within the proxy's task: it must not block, and whoever logs limits the rate.
/// At most [`MAX_CONNECTIONS`] come every tenth of a second.
pub type OnDenied = Arc<dyn Fn(&Denied) + Send + Sync>;

/// The proxy of one plugin's process. It serves until it is dropped; then its socket closes, and its connections
/// with it.
#[must_use = "dropping it ends it"]
pub struct Proxy {
    counters: Arc<Shared>,
    listener: Arc<UnixListener>,
    _task: AbortOnDropHandle<()>,
}

/// What the connections of one proxy share.
struct Shared {
    reach: Reach,
    counters: Counters,
    on_denied: OnDenied,
    only_uid: Option<u32>,
}

impl Proxy {
    /// Serves the listener until the handle is dropped.
    ///
    /// `only_uid` is the uid that whoever connects must have; connections of others are closed. `None` takes
    /// everybody who can reach the socket, for a supervisor that cannot give its plugins uids of their own.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(
        listener: UnixListener,
        allowed: AllowList,
        only_uid: Option<u32>,
        on_denied: OnDenied,
    ) -> Self {
        let reach = Reach::new(allowed);
        let shared = Arc::new(Shared { reach, counters: Counters::default(), on_denied, only_uid });
        let listener = Arc::new(listener);
        let task = tokio::spawn(serve_all(listener.clone(), shared.clone()));
        Self { counters: shared, listener, _task: AbortOnDropHandle::new(task) }
    }

    /// A duplicate of the listening socket, for a proxy of another supervisor. This one goes on.
    ///
    /// # Errors
    /// When there are too many open files.
    pub(crate) fn socket(&self) -> std::io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// What it has done so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.counters.counters.read()
    }
}

/// Ends only with its task, and with it end the connections, which it owns.
async fn serve_all(listener: Arc<UnixListener>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if !shared.may_connect(&stream) => {}
                Ok((stream, _)) => {
                    if has_place(&mut connections).await {
                        connections.spawn(serve::connection(stream, shared.clone()));
                    } else {
                        shared.counters.turned_away();
                        // Whether it arrives is the plugin's affair.
                        let _ = stream.try_write(FULL);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a plugin's proxy cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Waits for a place, if all are taken.
async fn has_place(connections: &mut JoinSet<()>) -> bool {
    connections.len() < MAX_CONNECTIONS || timeout(PLACE_WAIT, connections.join_next()).await.is_ok()
}

impl Shared {
    fn may_connect(&self, stream: &UnixStream) -> bool {
        self.only_uid.is_none_or(|uid| stream.peer_cred().is_ok_and(|peer| peer.uid() == uid))
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotListed { place } => write!(
                f,
                "{place} is not on this plugin's allow-list (if it should be, add it: sandbox.allow: [\"{place}\"])"
            ),
            Self::Inside { place, address } => write!(
                f,
                "{place} leads to {}, which is no public address (if that is meant, add the address itself: \
                 sandbox.allow: [\"{address}\"])",
                address.ip()
            ),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("traffic", &self.traffic()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
