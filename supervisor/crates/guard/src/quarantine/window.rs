//! Counts over a sliding window, in constant space.

use std::time::Duration;

use tokio::time::Instant;

/// The window moves in steps of a sixteenth of its length. A count is dropped at most one step early, which
/// is finer than any useful threshold.
const SLICES: usize = 16;

/// The sum of what was counted within the last `length`.
#[derive(Debug)]
pub(super) struct Window {
    slice: Duration,
    /// When the newest slice began; `None` before the first count.
    newest: Option<Instant>,
    counts: [u32; SLICES],
}

impl Window {
    pub(super) fn new(length: Duration) -> Self {
        // With slices of length zero the loop would never end.
        let slice = (length / SLICES as u32).max(Duration::from_nanos(1));
        Self { slice, newest: None, counts: [0; SLICES] }
    }

    /// Adds to the count and returns the new sum.
    pub(super) fn add(&mut self, now: Instant, count: u32) -> u32 {
        let newest = *self.newest.get_or_insert(now);
        let passed = now.saturating_duration_since(newest).as_nanos() / self.slice.as_nanos();
        let passed = usize::try_from(passed).unwrap_or(usize::MAX).min(SLICES);
        if passed > 0 {
            self.counts.copy_within(..SLICES - passed, passed);
            self.counts[..passed].fill(0);
            // Advance by whole slices. Otherwise the rest of one would be lost each time and counts would
            // stay too long.
            self.newest = Some(if passed < SLICES { newest + self.slice * passed as u32 } else { now });
        }
        self.counts[0] = self.counts[0].saturating_add(count);
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(super) fn clear(&mut self) {
        self.newest = None;
        self.counts = [0; SLICES];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(16);

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let start = Instant::now();
        let mut window = Window::new(LENGTH);
        assert_eq!(window.add(start, 2), 2);
        assert_eq!(window.add(start + Duration::from_secs(8), 3), 5);
        assert_eq!(window.add(start + Duration::from_secs(16), 1), 4);
        assert_eq!(window.add(start + Duration::from_secs(1000), 1), 1);
    }

    #[test]
    fn counts_do_not_overflow() {
        let now = Instant::now();
        let mut window = Window::new(Duration::ZERO);
        window.add(now, u32::MAX);
        assert_eq!(window.add(now, 7), u32::MAX);
    }

    #[test]
    fn cleared_it_is_empty() {
        let now = Instant::now();
        let mut window = Window::new(LENGTH);
        window.add(now, 9);
        window.clear();
        assert_eq!(window.add(now, 1), 1);
    }
}
