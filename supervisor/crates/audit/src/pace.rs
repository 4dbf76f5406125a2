//! Decides whether the disk is fast enough for calls to write to it themselves.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// A write is slow if it made its thread wait and took longer than this. A write that does not wait goes into the
/// kernel's memory and takes microseconds. This is far above that, and still too short for a call to notice.
const SLOW: Duration = Duration::from_millis(2);
/// After a slow write, the thread does all writing for this many times as long as the write took. So a thread that
/// serves calls waits for the disk for at most a hundredth of its time.
const REST_TIMES: u32 = 100;
/// The longest backoff: a disk that stalled once is tried again after that.
const MAX_REST: Duration = Duration::from_secs(10);

/// The measured latency of the disk.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    slow_until: Option<Instant>,
}

/// A write that is being timed.
#[derive(Debug)]
pub(crate) struct Timed {
    began: Instant,
    waits: Option<i64>,
}

impl Pace {
    /// Whether calls may write themselves.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.slow_until.is_none_or(|until| now >= until)
    }

    /// Learns from a finished write by a call.
    pub(crate) fn learn(&mut self, timed: &Timed) {
        let now = Instant::now();
        let took = now.saturating_duration_since(timed.began);
        self.slow_until = slow(took, || timed.has_waited()).then(|| now + rest(took));
    }
}

fn rest(took: Duration) -> Duration {
    took.saturating_mul(REST_TIMES).min(MAX_REST)
}

/// On a busy machine a thread may also be preempted during a write. It did not wait for the disk then.
fn slow(took: Duration, has_waited: impl FnOnce() -> bool) -> bool {
    took > SLOW && has_waited()
}

impl Timed {
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), waits: waits() }
    }

    fn has_waited(&self) -> bool {
        // If the system does not say, assume that it waited.
        waits().is_none_or(|waits| Some(waits) != self.waits)
    }
}

/// How often this thread has been switched out voluntarily, to wait for something.
fn waits() -> Option<i64> {
    getrusage(UsageWho::RUSAGE_THREAD).ok().map(|usage| usage.voluntary_context_switches())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_that_took_long_because_it_waited_was_slow() {
        assert!(slow(SLOW * 2, || true));
        assert!(!slow(SLOW * 2, || false));
        assert!(!slow(SLOW, || unreachable!("a fast write is not asked about")));
    }

    #[test]
    fn the_slower_the_disk_the_longer_it_is_left_alone() {
        assert_eq!(rest(SLOW), SLOW * 100);
        assert_eq!(rest(Duration::from_secs(3)), MAX_REST);
    }

    #[test]
    fn whoever_waited_is_known_to_have() {
        let timed = Timed::begin();
        assert!(!timed.has_waited(), "nothing was waited for");
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            // What is waited for comes with the end of this thread at the latest.
            drop(sender);
        });
        let _ = other.join();
        let _ = receiver.recv();
        // The other thread may have ended before it was waited for.
        let waited = timed.has_waited();
        let again = Timed::begin();
        let (_held, never) = std::sync::mpsc::channel::<()>();
        assert!(never.recv_timeout(Duration::from_millis(1)).is_err());
        assert!(again.has_waited() && (waited || timed.has_waited()));
    }

    #[test]
    fn a_slow_disk_is_left_to_the_thread_for_a_while() {
        let mut pace = Pace::default();
        let now = Instant::now();
        assert!(pace.allows(now));
        pace.learn(&Timed { began: now.checked_sub(SLOW * 2).unwrap(), waits: None });
        assert!(!pace.allows(now) && pace.allows(now + MAX_REST * 2));
        pace.learn(&Timed::begin());
        assert!(pace.allows(Instant::now()));
    }
}
