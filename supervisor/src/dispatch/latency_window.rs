//! Latencies of recent calls: enough for a median and a 99th percentile, in a few kilobytes a plugin.

use std::time::{Duration, Instant};

/// The length of one window. Two are kept, so that the result covers between one and two windows.
const WINDOW: Duration = Duration::from_secs(150);
/// Each power of two is divided into this many buckets, so that a value has an error of at most an eighth.
const PARTS: u64 = 8;
/// The smallest power of two that is divided; shorter times are exact to the microsecond.
const FIRST_POWER: u32 = PARTS.ilog2();
/// The largest value is 2^36 microseconds (19 hours); longer times count as that.
const LAST_POWER: u32 = 36;
const BUCKETS: usize = ((LAST_POWER - FIRST_POWER) as usize + 1) * PARTS as usize;

/// Latency histograms of the recent calls.
#[derive(Debug)]
pub(super) struct LatencyWindow {
    epoch: Instant,
    /// The number of the latest window.
    latest: u64,
    windows: [Box<[u32; BUCKETS]>; 2],
}

impl Default for LatencyWindow {
    fn default() -> Self {
        Self { epoch: Instant::now(), latest: 0, windows: [Box::new([0; BUCKETS]), Box::new([0; BUCKETS])] }
    }
}

impl LatencyWindow {
    /// Records the latency of a call.
    pub(super) fn add(&mut self, took: Duration) {
        self.add_at(took, self.epoch.elapsed());
    }

    fn add_at(&mut self, took: Duration, now: Duration) {
        self.rotate(now);
        let count = &mut self.windows[usize::from(!self.latest.is_multiple_of(2))][bucket(took)];
        *count = count.saturating_add(1);
    }

    /// The given percentiles of recent latencies, in microseconds; 0 if there were no calls.
    pub(super) fn percentiles<const N: usize>(&mut self, of_hundred: [u64; N]) -> [u64; N] {
        self.percentiles_at(of_hundred, self.epoch.elapsed())
    }

    fn percentiles_at<const N: usize>(&mut self, of_hundred: [u64; N], now: Duration) -> [u64; N] {
        self.rotate(now);
        let counts =
            || self.windows[0].iter().zip(self.windows[1].iter()).map(|(a, b)| u64::from(*a) + u64::from(*b));
        let all: u64 = counts().sum();
        of_hundred.map(|share| {
            let wanted = (all * share).div_ceil(100);
            let mut below = 0;
            let place = counts().position(|count| {
                below += count;
                wanted > 0 && below >= wanted
            });
            place.map_or(0, bound)
        })
    }

    /// Clears windows that are too old.
    fn rotate(&mut self, now: Duration) {
        let current = u64::try_from(now.as_millis() / WINDOW.as_millis()).unwrap_or(u64::MAX);
        let passed = current.saturating_sub(self.latest);
        self.latest = self.latest.max(current);
        if passed >= 1 {
            self.windows[usize::from(!self.latest.is_multiple_of(2))].fill(0);
        }
        if passed >= 2 {
            self.windows[usize::from(self.latest.is_multiple_of(2))].fill(0);
        }
    }
}

/// The bucket of a value.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).min((1 << LAST_POWER) - 1);
    if micros < PARTS {
        return usize::try_from(micros).unwrap_or_default();
    }
    let power = micros.ilog2();
    let part = (micros >> (power - FIRST_POWER)) - PARTS;
    usize::try_from(u64::from(power - FIRST_POWER + 1) * PARTS + part).unwrap_or(BUCKETS - 1)
}

/// The first value above a bucket.
fn bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let (row, part) = (bucket / PARTS, bucket % PARTS);
    if row == 0 { part + 1 } else { (PARTS + part + 1) << (row - 1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Promises: METRIC-6
        #[test]
        fn a_bucket_holds_a_value_and_is_narrow(micros in 0..1u64 << LAST_POWER) {
            let place = bucket(Duration::from_micros(micros));
            prop_assert!(place < BUCKETS);
            prop_assert!(micros < bound(place));
            prop_assert!(place == 0 || bound(place - 1) <= micros);
            prop_assert!(bound(place) - micros <= (micros / PARTS).max(1));
        }
    }

    // Promises: METRIC-6
    #[test]
    fn percentiles_are_of_recent_calls() {
        let mut recent = LatencyWindow::default();
        let ms = Duration::from_millis;
        assert_eq!(recent.percentiles_at([50, 99], ms(0)), [0, 0]);
        for _ in 0..99 {
            recent.add_at(ms(1), ms(0));
        }
        recent.add_at(ms(1000), ms(0));
        let [median, most] = recent.percentiles_at([50, 99], ms(0));
        assert!((1000..1200).contains(&median) && most == median, "{median} {most}");
        assert!(recent.percentiles_at([100], ms(0))[0] > 1_000_000);
        // Still there in the next window, gone in the one after.
        assert_eq!(recent.percentiles_at([50], WINDOW)[0], median);
        recent.add_at(ms(8), WINDOW);
        assert_eq!(recent.percentiles_at([50], WINDOW)[0], median);
        let later = recent.percentiles_at([50], WINDOW * 2)[0];
        assert!((8000..9300).contains(&later), "{later}");
        assert_eq!(recent.percentiles_at([50], WINDOW * 9), [0]);
        recent.add_at(Duration::MAX, WINDOW * 9);
        assert!(recent.percentiles_at([50], WINDOW * 9)[0] > 0);
    }
}
