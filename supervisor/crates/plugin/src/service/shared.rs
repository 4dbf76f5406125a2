//! What the handles and the driver of a service share.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use talon_sanitize::Sanitized;
use tokio::sync::Notify;

/// State that the handles and the driver share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) status: Mutex<ServiceStatus>,
    /// The grace period of the spec, or a shorter one.
    pub(super) grace: Mutex<Duration>,
    /// Notified when its process should be killed and replaced.
    pub(super) restart: Notify,
}

impl Shared {
    pub(super) fn status(&self) -> MutexGuard<'_, ServiceStatus> {
        self.status.lock()
    }

    pub(super) fn grace(&self) -> MutexGuard<'_, Duration> {
        self.grace.lock()
    }
}

/// The status of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStatus {
    /// The pid, while it runs.
    pub pid: Option<u32>,
    /// The uid it runs as.
    pub uid: u32,
    /// How often it was restarted.
    pub restarts: u64,
    /// Whether it runs.
    pub running: bool,
    /// How it ended last, or why it could not be started; `None` if that never happened.
    pub last_end: Option<Sanitized>,
    /// Protections that were not enforced at its last start, or only by a substitute; as in plugins'
    /// snapshots.
    pub not_enforced: Vec<Sanitized>,
}
