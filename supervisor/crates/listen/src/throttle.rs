//! Keeps clients from flooding the log.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The shortest time between two log lines about the same problem: enough to see that it persists.
const PAUSE: Duration = Duration::from_secs(1);

/// Permits one log line a second and counts the suppressed ones.
#[derive(Debug, Default)]
pub struct LogThrottle {
    /// When the last line was permitted, and how many were suppressed since.
    state: Mutex<(Option<Instant>, u64)>,
}

impl LogThrottle {
    /// A throttle that permits the first line.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: Mutex::new((None, 0)) }
    }

    /// If a line is permitted now, returns how many were suppressed since the last one.
    pub fn permit(&self) -> Option<u64> {
        self.permit_at(Instant::now())
    }

    fn permit_at(&self, now: Instant) -> Option<u64> {
        let mut said = self.state.lock();
        let (last, unsaid) = &mut *said;
        if last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE) {
            *unsaid += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_a_pause_and_the_others_are_counted() {
        let throttle = LogThrottle::new();
        let start = Instant::now();
        let words: Vec<Option<u64>> = [0, 100, 900, 1000, 1500, 2000]
            .map(|ms| throttle.permit_at(start + Duration::from_millis(ms)))
            .to_vec();
        assert_eq!(words, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
