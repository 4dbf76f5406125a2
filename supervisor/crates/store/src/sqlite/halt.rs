//! Cancels long work on a thread: because the caller stopped waiting, or the store is being closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cancellation flag that the work checks from time to time. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub(super) struct Halt {
    closed: Arc<AtomicBool>,
    given_up: Arc<AtomicBool>,
}

impl Halt {
    /// Cancels this work and everything started after it.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// The flag for a single piece of work, which is cancelled when the guard is dropped.
    pub(super) fn begin(&self) -> (Self, Wanted) {
        let given_up = Arc::<AtomicBool>::default();
        let one = Self { closed: Arc::clone(&self.closed), given_up: Arc::clone(&given_up) };
        (one, Wanted(given_up))
    }

    pub(super) fn is_set(&self) -> bool {
        self.closed.load(Ordering::Relaxed) || self.given_up.load(Ordering::Relaxed)
    }
}

/// Held by the caller that waits for the work.
pub(super) struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
