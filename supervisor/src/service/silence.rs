//! A service that gives no answers: whether it hangs, or is busy.

use std::time::Duration;

use tokio::time::Instant;

/// How long a service may give no answer while it uses the processor. 60 s: with a thousand turns on a full machine an answer takes seconds, and
/// a restart would only add work; one that hangs in a loop is replaced then.
pub(super) const MAX_BUSY: Duration = Duration::from_secs(60);
/// The part of the time that a busy service uses the processor at least: a fiftieth. Beside a full machine it may get little more, and one that
/// was stopped, or waits for a lock, uses none.
const BUSY_PART: u32 = 50;

/// A time without an answer.
#[derive(Debug)]
pub(super) struct Silence {
    since: Instant,
    /// The processor time of the process then; `None` if it could not be read.
    used: Option<Duration>,
}

impl Silence {
    /// One that begins with the question that was asked then.
    pub(super) fn new(since: Instant, used: Option<Duration>) -> Self {
        Self { since, used }
    }

    /// Whether the process counts as hung `now`, with so much processor time `used`: over the whole silence it has hardly used the processor, or
    /// it has been busy for [`MAX_BUSY`]. The whole silence counts, since a question that fails at once says nothing, and the kernel counts in
    /// ticks of 10 ms.
    pub(super) fn is_hung(&self, now: Instant, used: Option<Duration>) -> bool {
        let silent = now.duration_since(self.since);
        let used = self.used.zip(used).map(|(before, after)| after.saturating_sub(before));
        let is_busy = used.is_some_and(|used| used * BUSY_PART >= silent);
        !is_busy || silent >= MAX_BUSY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    // Promises: GW-138
    #[test]
    fn a_service_that_uses_the_processor_is_busy_and_one_that_was_stopped_is_not() {
        let begin = Instant::now();
        let silence = Silence::new(begin, used(1000));
        let now = begin + Duration::from_secs(5);
        assert!(!silence.is_hung(now, used(1100)));
        assert!(silence.is_hung(now, used(1090)));
        assert!(silence.is_hung(now, used(1000)));
        assert!(silence.is_hung(now, None));
        assert!(Silence::new(begin, None).is_hung(now, used(5000)));
    }

    #[test]
    fn a_minute_of_silence_is_the_most() {
        let begin = Instant::now();
        let silence = Silence::new(begin, used(1000));
        assert!(!silence.is_hung(begin + MAX_BUSY - Duration::from_millis(1), used(61_000)));
        assert!(silence.is_hung(begin + MAX_BUSY, used(61_000)));
    }
}
