//! A circuit breaker for an unreachable server: one call from time to time tries to connect, and all others
//! fail at once.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::error::Error;

/// The first backoff after a failure: a restarting server is back soon.
const INITIAL_BACKOFF: Duration = Duration::from_millis(100);
/// The longest backoff, and so the longest time until a restored server is noticed.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct CircuitBreaker(Mutex<Option<Outage>>);

#[derive(Debug)]
struct Outage {
    reason: String,
    /// The upper limit of the backoff. Each one is a random part of it, so that machines that share a server
    /// do not all reconnect at the same moment.
    wait: Duration,
    retry_at: Instant,
}

impl CircuitBreaker {
    /// Admits a call, unless the server was just found to be unreachable. When it is time for another
    /// attempt, admits one of the calls.
    pub(super) fn admit(&self) -> Result<(), Error> {
        let mut down = self.0.lock();
        let Some(down) = &mut *down else { return Ok(()) };
        let now = Instant::now();
        if now < down.retry_at {
            return Err(Error::Unavailable { reason: down.reason.clone(), retry_in: down.retry_at - now });
        }
        down.retry_at = now + jittered(down.wait);
        Ok(())
    }

    pub(super) fn record_failure(&self, reason: &str) -> Error {
        let mut down = self.0.lock();
        let wait = down.as_ref().map_or(INITIAL_BACKOFF, |before| (before.wait * 2).min(MAX_BACKOFF));
        if down.is_none() {
            tracing::warn!(reason, "the database server cannot be reached");
        }
        let retry_in = jittered(wait);
        *down = Some(Outage { reason: reason.to_owned(), wait, retry_at: Instant::now() + retry_in });
        Error::Unavailable { reason: reason.to_owned(), retry_in }
    }

    pub(super) fn record_success(&self) {
        if self.0.lock().take().is_some() {
            tracing::info!("the database server is back");
        }
    }
}

/// A random duration between half of `wait` and all of it.
fn jittered(wait: Duration) -> Duration {
    // Without random bits the backoffs are just not spread.
    let part = getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX));
    wait.mul_f64(0.5 + part / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_in(gate: &CircuitBreaker) -> Option<Duration> {
        match gate.admit() {
            Err(Error::Unavailable { retry_in, reason }) => {
                assert_eq!(reason, "gone");
                Some(retry_in)
            }
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_attempt_at_a_time_is_let_through_and_later_each_time() {
        let gate = CircuitBreaker::default();
        assert_eq!(retry_in(&gate), None);
        let mut waited = Vec::new();
        for _ in 0..8 {
            gate.record_failure("gone");
            let wait = retry_in(&gate).expect("it was just found to be gone");
            tokio::time::advance(wait).await;
            assert_eq!(retry_in(&gate), None);
            assert!(retry_in(&gate).is_some(), "another attempt is under way");
            waited.push(wait);
        }
        for (waited, longest) in
            waited.iter().zip([1, 2, 4, 8, 16, 32, 50, 50].map(|times| INITIAL_BACKOFF * times))
        {
            assert!(*waited >= longest / 2 && *waited <= longest, "{waited:?} of {longest:?}");
        }
        assert_eq!(MAX_BACKOFF, INITIAL_BACKOFF * 50);
        gate.record_success();
        assert_eq!(retry_in(&gate), None);
        gate.record_failure("gone");
        assert!(retry_in(&gate).is_some_and(|wait| wait <= INITIAL_BACKOFF));
    }
}
