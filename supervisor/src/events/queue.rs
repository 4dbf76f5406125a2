//! Events that wait for the disk.

use std::collections::VecDeque;

use super::host_event::NewHostEvent;

/// How many wait at most, while the disk refuses or is slow; about 1 MiB. At the bound the oldest is dropped and counted.
pub(super) const MAX_WAITING: usize = 1024;
/// How many are written at once: one sync for all of them.
const MAX_BATCH: usize = 64;

/// A bounded queue of encoded events.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Encoded>,
    /// How many were dropped since the last batch was written.
    dropped: u64,
}

/// An event as it is written.
#[derive(Debug, Clone)]
pub(super) struct Encoded {
    pub(super) kind: &'static str,
    pub(super) bytes: Vec<u8>,
}

impl Queue {
    /// Adds an event. Returns how many were dropped for it.
    pub(super) fn push(&mut self, event: &NewHostEvent) -> u64 {
        let dropped = u64::from(self.waiting.len() >= MAX_WAITING && self.waiting.pop_front().is_some());
        self.dropped += dropped;
        self.waiting.push_back(Encoded { kind: event.kind.as_str(), bytes: event.encode() });
        dropped
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.dropped == 0
    }

    /// The oldest events, and how many were dropped before them.
    pub(super) fn take_batch(&mut self) -> (u64, Vec<Encoded>) {
        let count = self.waiting.len().min(MAX_BATCH);
        (std::mem::take(&mut self.dropped), self.waiting.drain(..count).collect())
    }

    /// Puts back what could not be written. Returns how many were dropped because of the bound.
    pub(super) fn put_back(&mut self, dropped: u64, batch: Vec<Encoded>) -> u64 {
        let room = MAX_WAITING.saturating_sub(self.waiting.len());
        let over = batch.len().saturating_sub(room);
        for event in batch.into_iter().skip(over).rev() {
            self.waiting.push_front(event);
        }
        self.dropped += dropped + over as u64;
        over as u64
    }

    /// Counts events that were lost before they came here.
    pub(super) fn record_lost(&mut self, count: u64) {
        self.dropped += count;
    }
}
