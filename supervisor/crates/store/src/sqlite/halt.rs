//! What ends a long work on a thread: nobody waits for it any more, or the store is being closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asked by the work from time to time. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Halt {
    closed: Arc<AtomicBool>,
    given_up: Arc<AtomicBool>,
}

impl Halt {
    /// Ends this work and all that is begun after it.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// One for a single work, which ends when the second is dropped.
    pub(super) fn begin(&self) -> (Self, Wanted) {
        let given_up = Arc::<AtomicBool>::default();
        let one = Self { closed: Arc::clone(&self.closed), given_up: Arc::clone(&given_up) };
        (one, Wanted(given_up))
    }

    pub(super) fn is_set(&self) -> bool {
        self.closed.load(Ordering::Relaxed) || self.given_up.load(Ordering::Relaxed)
    }
}

/// Held by whoever waits for the work.
pub(super) struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
