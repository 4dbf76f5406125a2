//! A client's connection that waits to be passed to the agent, and how many there may be.

use std::os::fd::OwnedFd;

use talon_proto::agent::AttachClient;
use tokio::sync::oneshot;

/// Maximum concurrent connections. Each is a terminal, a gateway or a script, and costs two tasks here and in
/// the agent, which runs fewer turns at once than this. A further connection is closed at once, which its
/// client reports.
pub const MAX_CLIENTS: usize = 64;
/// Maximum concurrent connections of one uid, so that one user cannot lock out others.
pub const MAX_CLIENTS_PER_UID: usize = 48;
/// Maximum number of connections that wait to be passed on: every client at once, and some of the
/// supervisor's own.
pub(super) const MAX_WAITING: usize = MAX_CLIENTS + 8;

/// A client's connection and identity.
pub(super) struct PendingClient {
    pub(super) identity: AttachClient,
    pub(super) connection: OwnedFd,
    /// Notified when the connection has been passed on. Such a client also waits while the agent restarts, as
    /// long as the receiver exists.
    pub(super) accepted: Option<oneshot::Sender<()>>,
}

impl PendingClient {
    /// Whether somebody still waits for it to be passed on.
    pub(super) fn is_waiting(&self) -> bool {
        self.accepted.as_ref().is_some_and(|taken| !taken.is_closed())
    }
}
