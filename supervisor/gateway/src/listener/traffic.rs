//! What is counted of the traffic, for the supervisor's status.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use http::StatusCode;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub struct Traffic {
    connections: AtomicU32,
    requests: AtomicU64,
    refused: AtomicU64,
}

impl Traffic {
    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Requests that were answered.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Connections and requests that were refused for a limit.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, status: StatusCode) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status == StatusCode::TOO_MANY_REQUESTS {
            self.count_refused();
        }
    }

    /// A connection or request was refused.
    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}
