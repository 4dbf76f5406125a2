//! Cancels long work on a thread: because the caller stopped waiting, or the store is being closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cancellation flag that the work checks from time to time. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub(super) struct Cancellation {
    closed: Arc<AtomicBool>,
    abandoned: Arc<AtomicBool>,
}

impl Cancellation {
    /// Cancels this work and everything started after it.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// The flag for a single piece of work, which is cancelled when the guard is dropped.
    pub(super) fn child(&self) -> (Self, CancelOnDrop) {
        let given_up = Arc::<AtomicBool>::default();
        let one = Self { closed: Arc::clone(&self.closed), abandoned: Arc::clone(&given_up) };
        (one, CancelOnDrop(given_up))
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.closed.load(Ordering::Relaxed) || self.abandoned.load(Ordering::Relaxed)
    }
}

/// Held by the caller that waits for the work.
pub(super) struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
