//! Whether the database refuses writes because there is no room for them.

use std::time::Duration;

use parking_lot::Mutex;
use talon_error_chain::error_chain;
use talon_store::Error;
use tokio::sync::Notify;

/// The time between two checks while there is no room. It bounds what the starter hears of a disk that is
/// nearly full: two messages each time.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// What the last refused write said, while there is no room.
#[derive(Debug, Default)]
pub(crate) struct Fullness {
    problem: Mutex<Option<String>>,
    changed: Notify,
}

impl Fullness {
    /// Notes a refused write.
    pub(crate) fn note(&self, error: &Error) {
        let mut problem = self.problem.lock();
        if problem.is_none() {
            *problem = Some(error_chain(error));
            self.changed.notify_one();
        }
    }

    /// Resolves when a write was refused that was not expected to be.
    pub(crate) async fn noted(&self) {
        self.changed.notified().await;
    }

    /// There is room again.
    pub(crate) fn clear(&self) {
        *self.problem.lock() = None;
    }

    /// Why writes are refused; empty while they are not.
    pub(crate) fn problem(&self) -> String {
        self.problem.lock().clone().unwrap_or_default()
    }
}
