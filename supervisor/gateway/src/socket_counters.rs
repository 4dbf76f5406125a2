//! How many connections there are, and what became of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts WebSocket connections.
#[derive(Debug, Default)]
pub(crate) struct SocketCounters {
    open: AtomicU64,
    messages: AtomicU64,
    cut: AtomicU64,
}

/// The place of an open connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct SocketPlace(Arc<SocketCounters>);

impl SocketCounters {
    /// A place, unless there are so many already.
    pub(crate) fn enter(counters: &Arc<Self>, most: u64) -> Option<SocketPlace> {
        let more = |open: u64| (open < most).then_some(open + 1);
        counters.open.try_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(SocketPlace(Arc::clone(counters)))
    }

    pub(crate) fn count_message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Messages of clients.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Connections that were cut off because their clients read too slowly.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
