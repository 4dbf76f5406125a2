//! How many lines one plugin may log: a token bucket that counts what it turns away.

use std::time::Duration;

use tokio::time::Instant;

/// Between two reports of dropped lines: often enough to notice, too seldom to be a flood itself.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// A longer line counts as several: what fills a disk is bytes. 256 is longer than lines for people are.
const BYTES_A_LINE: usize = 256;

/// What happens to a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is logged.
    Pass,
    /// It is logged, and before it how many were dropped since that was last said.
    PassAndReport { dropped: u64 },
    /// It is dropped.
    Drop,
}

#[derive(Debug)]
pub(super) struct Rate {
    per_second: f64,
    burst: f64,
    tokens: f64,
    refilled: Instant,
    dropped: u64,
    reported: Option<Instant>,
}

impl Rate {
    pub(super) fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst.max(1));
        let per_second = f64::from(per_second.max(1));
        Self { per_second, burst, tokens: burst, refilled: now, dropped: 0, reported: None }
    }

    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> Verdict {
        let elapsed = now.saturating_duration_since(self.refilled).as_secs_f64();
        self.tokens = (self.tokens + elapsed * self.per_second).min(self.burst);
        self.refilled = now;
        if self.tokens < 1.0 {
            self.dropped += 1;
            return Verdict::Drop;
        }
        // It may go below zero, so that a line that counts for more than a burst is not dropped for ever.
        let lines = bytes.div_ceil(BYTES_A_LINE).max(1);
        self.tokens -= f64::from(u32::try_from(lines).unwrap_or(u32::MAX));
        let due = self.reported.is_none_or(|at| now.saturating_duration_since(at) >= REPORT_EVERY);
        if self.dropped > 0 && due {
            self.reported = Some(now);
            return Verdict::PassAndReport { dropped: std::mem::take(&mut self.dropped) };
        }
        Verdict::Pass
    }

    pub(super) fn take_dropped(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.dropped)).filter(|dropped| *dropped > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut rate = Rate::new(10, 3, start);
        for _ in 0..3 {
            assert_eq!(rate.take(start, 10), Verdict::Pass);
        }
        assert_eq!(rate.take(start, 10), Verdict::Drop);
        assert_eq!(rate.take(start, 10), Verdict::Drop);
        let later = start + Duration::from_millis(150);
        assert_eq!(rate.take(later, 10), Verdict::PassAndReport { dropped: 2 });
        assert_eq!(rate.take(later, 10), Verdict::Drop);
        // Within a second of the last report the count goes on silently.
        let later = later + Duration::from_millis(150);
        assert_eq!(rate.take(later, 10), Verdict::Pass);
        assert_eq!(rate.take_dropped(), Some(1));
        assert_eq!(rate.take_dropped(), None);
    }

    #[test]
    fn long_lines_count_as_several() {
        let start = Instant::now();
        let mut rate = Rate::new(1, 10, start);
        assert_eq!(rate.take(start, 8 * BYTES_A_LINE), Verdict::Pass);
        assert_eq!(rate.take(start, 8 * BYTES_A_LINE), Verdict::Pass);
        assert_eq!(rate.take(start, 1), Verdict::Drop);
        // Six too many: they are made up for first.
        assert_eq!(rate.take(start + Duration::from_secs(6), 1), Verdict::Drop);
        let later = start + Duration::from_secs(7);
        assert_eq!(rate.take(later, 1), Verdict::PassAndReport { dropped: 2 });
    }

    #[test]
    fn it_never_saves_up_more_than_a_burst() {
        let start = Instant::now();
        let mut rate = Rate::new(1000, 2, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!(rate.take(later, 10), Verdict::Pass);
        assert_eq!(rate.take(later, 10), Verdict::Pass);
        assert_eq!(rate.take(later, 10), Verdict::Drop);
    }
}
