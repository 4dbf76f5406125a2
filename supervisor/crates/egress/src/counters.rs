//! Traffic counters of a proxy.

use std::sync::atomic::{AtomicU64, Ordering};

/// Traffic of a proxy since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Tunnels that were opened.
    pub tunnels: u64,
    /// Plain `http` requests that were passed on.
    pub requests: u64,
    /// Requests for what the plugin may not reach.
    pub denied: u64,
    /// Requests that were malformed, or whose target could not be reached.
    pub failed: u64,
    /// Connections that were refused because all slots were in use.
    pub turned_away: u64,
    /// Bytes from the plugin.
    pub sent_bytes: u64,
    /// Bytes to the plugin.
    pub received_bytes: u64,
}

/// The live counters. They are independent of each other, so the memory order does not matter.
#[derive(Debug, Default)]
pub(super) struct Counters {
    tunnels: AtomicU64,
    requests: AtomicU64,
    denied: AtomicU64,
    failed: AtomicU64,
    turned_away: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn tunnel(&self) {
        self.tunnels.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn denied(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> Traffic {
        Traffic {
            tunnels: self.tunnels.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            denied: self.denied.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            turned_away: self.turned_away.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
        }
    }
}
