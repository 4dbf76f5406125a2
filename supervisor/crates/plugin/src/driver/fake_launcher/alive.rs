//! Counts what a fake launcher has in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts one item until it is dropped.
pub(super) struct AliveGuard(Arc<AtomicUsize>);

impl AliveGuard {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
