//! How far the calls of one answer are: which have begun, which are done, and which may begin.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::sync::watch;

/// The progress of one answer's calls, by their index in the answer.
#[derive(Debug, Default)]
pub struct BatchProgress {
    /// For which calls each call waits ([`crate::tools::earlier_calls`]).
    waits: BTreeMap<usize, BTreeSet<usize>>,
    done: watch::Sender<BTreeSet<usize>>,
    begun: Mutex<BTreeSet<usize>>,
}

/// The place of a call among the others of its answer.
#[derive(Debug, Clone, Copy)]
pub struct CallPosition<'a> {
    progress: &'a BatchProgress,
    place: usize,
}

impl BatchProgress {
    /// Starts with these waits.
    #[must_use]
    pub fn new(waits: BTreeMap<usize, BTreeSet<usize>>) -> Self {
        Self { waits, done: watch::Sender::default(), begun: Mutex::default() }
    }

    /// The position of a call.
    #[must_use]
    pub fn position(&self, place: usize) -> CallPosition<'_> {
        CallPosition { progress: self, place }
    }

    /// Records that a call has its result: what waits for it may begin.
    pub(super) fn finish(&self, place: usize) {
        self.done.send_modify(|done| {
            done.insert(place);
        });
    }

    /// Records that a call begins.
    pub(super) fn begin(&self, place: usize) {
        self.begun.lock().insert(place);
    }

    /// Whether a call has begun.
    pub(super) fn has_begun(&self, place: usize) -> bool {
        self.begun.lock().contains(&place)
    }
}

impl CallPosition<'_> {
    /// Returns when each call is done for which this one waits.
    pub async fn wait_for_earlier(&self) {
        let Some(earlier) = self.progress.waits.get(&self.place) else { return };
        let mut done = self.progress.done.subscribe();
        // The sender lives as long as this borrow of it.
        let _ = done.wait_for(|done| earlier.is_subset(done)).await;
    }
}
