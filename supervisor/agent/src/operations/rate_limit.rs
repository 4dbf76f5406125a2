//! How fast operations are written to the control socket.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two operations, on average: 900 a second, some less than those after which the supervisor takes the agent
/// for broken (60,000 a minute). Clients that want more wait for each other.
const INTERVAL: Duration = Duration::from_micros(1_111);
/// How many may follow each other at once, in time.
const BURST: Duration = Duration::from_secs(1);

/// The pace of operations.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// When the next one would be written at an even pace.
    due: Instant,
}

impl RateLimit {
    pub(crate) fn new(now: Instant) -> Self {
        Self { due: now }
    }

    /// When one that is to be written may be.
    pub(crate) fn next(&mut self, now: Instant) -> Instant {
        let at = self.due.checked_sub(BURST).map_or(now, |earliest| earliest.max(now));
        self.due = self.due.max(now) + INTERVAL;
        at
    }
}
