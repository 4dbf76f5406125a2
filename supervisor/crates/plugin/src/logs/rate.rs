//! The rate limit of one plugin's log: a token bucket that counts dropped lines.

use std::time::Duration;

use tokio::time::Instant;

/// The interval between reports of dropped lines: often enough to notice, seldom enough not to flood the log.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// A longer line counts as several, because bytes fill a disk. 256 is longer than a usual line for people.
const BYTES_A_LINE: usize = 256;

/// The decision about a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is logged.
    Pass,
    /// It is logged, after a report of how many lines were dropped since the last report.
    PassAndReport { dropped: u64 },
    /// It is dropped.
    Drop,
}

#[derive(Debug)]
pub(super) struct RateLimiter {
    per_second: f64,
    burst: f64,
    tokens: f64,
    refilled: Instant,
    dropped: u64,
    reported: Option<Instant>,
}

impl RateLimiter {
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
        // May go below zero. Otherwise a line that counts for more than a burst could never pass.
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

    // Promises: HAND-24
    #[test]
    fn a_burst_passes_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut rate = RateLimiter::new(10, 3, start);
        for _ in 0..3 {
            assert_eq!(rate.take(start, 10), Verdict::Pass);
        }
        assert_eq!(rate.take(start, 10), Verdict::Drop);
        assert_eq!(rate.take(start, 10), Verdict::Drop);
        let later = start + Duration::from_millis(150);
        assert_eq!(rate.take(later, 10), Verdict::PassAndReport { dropped: 2 });
        assert_eq!(rate.take(later, 10), Verdict::Drop);
        // Within a second of the last report lines are counted without a report.
        let later = later + Duration::from_millis(150);
        assert_eq!(rate.take(later, 10), Verdict::Pass);
        assert_eq!(rate.take_dropped(), Some(1));
        assert_eq!(rate.take_dropped(), None);
    }

    #[test]
    fn long_lines_count_as_several() {
        let start = Instant::now();
        let mut rate = RateLimiter::new(1, 10, start);
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
        let mut rate = RateLimiter::new(1000, 2, start);
        let later = start + Duration::from_secs(3600);
        assert_eq!(rate.take(later, 10), Verdict::Pass);
        assert_eq!(rate.take(later, 10), Verdict::Pass);
        assert_eq!(rate.take(later, 10), Verdict::Drop);
    }
}
