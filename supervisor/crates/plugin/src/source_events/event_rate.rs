//! How many events a plugin may tell: as many at once as in a minute, and then as the minute goes by. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// Events that may be taken now.
#[derive(Debug)]
pub(super) struct EventRate {
    tokens: f64,
    at: Instant,
}

const MINUTE: Duration = Duration::from_secs(60);

impl EventRate {
    /// All of a minute.
    pub(super) fn new(per_minute: u32, now: Instant) -> Self {
        Self { tokens: f64::from(per_minute), at: now }
    }

    /// Takes one event; or how long it takes until there may be one.
    pub(super) fn take(&mut self, per_minute: u32, now: Instant) -> Result<(), Duration> {
        let per_second = f64::from(per_minute.max(1)) / MINUTE.as_secs_f64();
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + since * per_second).min(f64::from(per_minute.max(1)));
        self.at = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) / per_second).max(Duration::from_millis(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-152
    #[test]
    fn no_minute_has_more_than_twice_what_it_may() {
        let mut now = Instant::now();
        let mut rate = EventRate::new(60, now);
        let mut taken = 0;
        while rate.take(60, now).is_ok() {
            taken += 1;
        }
        assert_eq!(taken, 60);
        let begin = now;
        while now < begin + MINUTE {
            match rate.take(60, now) {
                Ok(()) => taken += 1,
                Err(wait) => now += wait,
            }
        }
        assert!((118..=121).contains(&taken), "{taken}");
    }
}
