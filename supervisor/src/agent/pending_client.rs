//! A client's connection that waits to be passed to the agent, and how many there may be.

use std::os::fd::OwnedFd;

use talon_proto::agent::AttachClient;
use tokio::sync::oneshot;

/// Connections of the supervisor's own that wait to be passed on, beside every client's at once (`agent.limits.connections`).
pub(super) const OWN_WAITING: usize = 8;

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
