//! When a connection is closed: a limit that moves with what happens.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// The moment when a connection is closed. Hardly contended: the tasks of one connection share it.
#[derive(Debug)]
pub(crate) struct Deadline(Mutex<Instant>);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        Self(Mutex::new(Instant::now() + time))
    }

    /// Moves it to so long from now.
    pub(crate) fn set(&self, time: Duration) {
        *self.0.lock() = Instant::now() + time;
    }

    /// Resolves once it has passed.
    pub(crate) async fn passed(&self) {
        loop {
            let end = *self.0.lock();
            if end <= Instant::now() {
                break;
            }
            sleep_until(end).await;
        }
    }
}
