//! Network access for plugins in a jail without network: a unix socket to a proxy in the supervisor, which
//! connects only to the hosts and ports of an allow-list.
//!
//! ```text
//! plugin ──unix socket── Proxy: CONNECT host:port ── allow-list ── lookup ── public? ── TCP ──► host
//! ```
//!
//! The plugin's network namespace stays empty, so a plugin cannot bypass the proxy. The proxy sees names and
//! counts bytes; it does not inspect tunnels. `docs/egress.md` is the documentation for users.
//!
//! Everything is bounded: connections, the time of each phase, buffers, lookups, and the texts about denials.
//! Dropping the [`Proxy`] ends all of it.

mod connector;
mod counters;
mod denial;
mod proxy_state;
mod serve;
mod tunnel;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use talon_plugin_config::allow_list::AllowList;
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

pub use connector::{CONNECT_TIMEOUT, LOOKUP_TIMEOUT, MAX_LOOKUPS};
pub use counters::Traffic;
pub use denial::{Denial, OnDenied};
pub use serve::{HEAD_TIMEOUT, MAX_HEAD_BYTES};
pub use tunnel::IDLE_TIMEOUT;

use connector::Connector;
use counters::Counters;
use proxy_state::ProxyState;

/// The most connections of one plugin at once. 64: as many as its calls may wait (`guard.queue`), with one
/// connection each. A further connection waits for [`SLOT_WAIT`] and is then answered with 503; those after
/// it wait in the kernel.
pub const MAX_CONNECTIONS: usize = 64;

/// How long a connection waits for a free slot. A burst passes in that time, and a plugin that leaks
/// connections notices.
pub const SLOT_WAIT: Duration = Duration::from_secs(10);

/// The pause after the kernel refused an accept because descriptors ran out. Another connection has to end
/// first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Fits into the send buffer of a new socket, so that writing never waits for the reader.
const BUSY_RESPONSE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    connection: close\r\n\r\nall 64 connections of this plugin are in use: close some, or try again later\n";

/// The proxy of one plugin process. Dropping it closes its socket and its connections.
#[must_use = "dropping it ends it"]
pub struct Proxy {
    shared: Arc<ProxyState>,
    listener: Arc<UnixListener>,
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
        let reach = Connector::new(allowed);
        let shared =
            Arc::new(ProxyState { connector: reach, counters: Counters::default(), on_denied, only_uid });
        let listener = Arc::new(listener);
        let task = tokio::spawn(accept_loop(listener.clone(), shared.clone()));
        Self { shared, listener, _task: AbortOnDropHandle::new(task) }
    }

    /// A duplicate of the listening socket, for the proxy of another supervisor. This proxy keeps running.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn socket(&self) -> std::io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// The traffic so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.counters.snapshot()
    }
}

/// Runs until its task is aborted. It owns the connections, so they end with it.
async fn accept_loop(listener: Arc<UnixListener>, shared: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if !shared.may_connect(&stream) => {}
                Ok((stream, _)) => {
                    if wait_for_slot(&mut connections).await {
                        connections.spawn(serve::connection(stream, shared.clone()));
                    } else {
                        shared.counters.turned_away();
                        // The plugin may not receive it, which does no harm.
                        let _ = stream.try_write(BUSY_RESPONSE);
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

/// Waits for a free slot, if all are in use.
async fn wait_for_slot(connections: &mut JoinSet<()>) -> bool {
    connections.len() < MAX_CONNECTIONS || timeout(SLOT_WAIT, connections.join_next()).await.is_ok()
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("traffic", &self.traffic()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
