//! The counters of a soak, which its clients and its chaos share.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Problems whose text is kept; all are counted.
const MAX_MESSAGES: usize = 20;

/// The counters of the run.
#[derive(Debug, Default)]
pub(super) struct SoakTotals {
    /// Calls that succeeded.
    pub(super) calls: AtomicU64,
    /// Calls to the killed plugin that failed because of the kill.
    pub(super) died: AtomicU64,
    /// Events that listeners received.
    pub(super) events: AtomicU64,
    /// Events that the slow listener missed, as reported to it.
    pub(super) missed: AtomicU64,
    /// Kills, reloads of the configuration, reloads of the plugin.
    pub(super) troubles: [AtomicU64; 3],
    problems: AtomicU64,
    messages: Mutex<Vec<String>>,
}

impl SoakTotals {
    /// Records an unexpected failure.
    pub(super) fn problem(&self, what: String) {
        self.problems.fetch_add(1, Ordering::Relaxed);
        let mut told = self.messages.lock();
        if told.len() < MAX_MESSAGES {
            told.push(what);
        }
    }

    /// How many there were, and the first of them.
    pub(super) fn problems(&self) -> (u64, Vec<String>) {
        let told = self.messages.lock().clone();
        (self.problems.load(Ordering::Relaxed), told)
    }

    pub(super) fn summary(&self) -> String {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let (calls, died, problems) = (count(&self.calls), count(&self.died), count(&self.problems));
        format!("{calls} calls, {died} died with their plugin, {problems} problems")
    }
}
