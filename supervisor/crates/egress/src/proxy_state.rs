//! State that the connections of one proxy share.

use std::sync::Arc;
use std::time::Duration;

use talon_plugin_config::allow_list::AllowList;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use crate::connector::Connector;
use crate::counters::Counters;
use crate::denial::OnDenied;

/// The most connections of one plugin at once, over all of its sockets. 64: as many as its calls may wait
/// (`guard.queue`), with one connection each. A further connection waits for [`SLOT_WAIT`] and is then answered
/// with 503, or closed where it is a tunnel from its first byte; those after it wait in the kernel.
pub const MAX_CONNECTIONS: usize = 64;

/// How long a connection waits for a free slot. A burst passes in that time, and a plugin that leaks
/// connections notices.
pub const SLOT_WAIT: Duration = Duration::from_secs(10);

/// State that the connections of one proxy share.
pub(crate) struct ProxyState {
    pub(crate) connector: Connector,
    pub(crate) counters: Counters,
    pub(crate) on_denied: OnDenied,
    pub(crate) only_uid: Option<u32>,
    /// One permit for each connection.
    pub(crate) slots: Arc<Semaphore>,
}

impl ProxyState {
    pub(crate) fn new(allowed: AllowList, only_uid: Option<u32>, on_denied: OnDenied) -> Self {
        Self {
            connector: Connector::new(allowed),
            counters: Counters::default(),
            on_denied,
            only_uid,
            slots: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    /// Whether the peer has the only accepted uid.
    pub(crate) fn may_connect(&self, stream: &UnixStream) -> bool {
        self.only_uid.is_none_or(|uid| stream.peer_cred().is_ok_and(|peer| peer.uid() == uid))
    }
}
