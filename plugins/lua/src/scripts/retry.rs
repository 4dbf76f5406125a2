//! When a load that failed for another reason than the script's is tried again.

use std::time::Duration;

use tokio::time::Instant;

/// The first pause. 200 milliseconds: the next look at the directory.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause; each is twice as long as the one before. 30 seconds: what is wrong with the machine is mended by hand.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A load that is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    pause: Duration,
    due: Instant,
}

impl Retry {
    /// After this failure and the ones before, without a success between them.
    pub(super) fn after(before: Option<Self>, now: Instant) -> Self {
        let pause = before.map_or(FIRST_PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
        Self { pause, due: now + pause }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_twice_the_one_before_up_to_the_longest() {
        let now = Instant::now();
        let mut retry = Retry::after(None, now);
        assert!(!retry.is_due(now));
        assert!(retry.is_due(now + FIRST_PAUSE));
        for _ in 0..20 {
            let next = Retry::after(Some(retry), now);
            assert_eq!(next.pause, (retry.pause * 2).min(LONGEST_PAUSE));
            retry = next;
        }
        assert!(!retry.is_due(now + LONGEST_PAUSE / 2));
        assert!(retry.is_due(now + LONGEST_PAUSE));
    }
}
