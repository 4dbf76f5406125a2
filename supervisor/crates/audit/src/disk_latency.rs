//! Decides whether the disk is fast enough for calls to write to it themselves.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// A write is slow if it made its thread wait and took longer than this. A write that does not wait goes into
/// the kernel's memory and takes microseconds. This is far above that, and still too short for a call to
/// notice.
const SLOW_WRITE: Duration = Duration::from_millis(2);
/// After a slow write, the thread does all writing for this many times as long as the write took. So a thread
/// that serves calls waits for the disk for at most a hundredth of its time.
const BACKOFF_FACTOR: u32 = 100;
/// The longest backoff: a disk that stalled once is tried again after that.
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// The measured latency of the disk.
#[derive(Debug, Default)]
pub(crate) struct DiskLatency {
    slow_until: Option<Instant>,
}

/// A write that is being timed.
#[derive(Debug)]
pub(crate) struct WriteTimer {
    began: Instant,
    switches_before: Option<i64>,
}

impl DiskLatency {
    /// Whether calls may write themselves.
    pub(crate) fn allows_inline_write(&self, now: Instant) -> bool {
        self.slow_until.is_none_or(|until| now >= until)
    }

    /// Learns from a finished write by a call.
    pub(crate) fn observe(&mut self, timed: &WriteTimer) {
        let now = Instant::now();
        let took = now.saturating_duration_since(timed.began);
        self.slow_until = is_slow(took, || timed.has_waited()).then(|| now + backoff(took));
    }
}

fn backoff(took: Duration) -> Duration {
    took.saturating_mul(BACKOFF_FACTOR).min(MAX_BACKOFF)
}

/// On a busy machine a thread may also be preempted during a write. It did not wait for the disk then.
fn is_slow(took: Duration, has_waited: impl FnOnce() -> bool) -> bool {
    took > SLOW_WRITE && has_waited()
}

impl WriteTimer {
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), switches_before: voluntary_switches() }
    }

    fn has_waited(&self) -> bool {
        // If the system does not say, assume that it waited.
        voluntary_switches().is_none_or(|waits| Some(waits) != self.switches_before)
    }
}

/// How often this thread has been switched out voluntarily, to wait for something.
fn voluntary_switches() -> Option<i64> {
    getrusage(UsageWho::RUSAGE_THREAD).ok().map(|usage| usage.voluntary_context_switches())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_that_took_long_because_it_waited_was_slow() {
        assert!(is_slow(SLOW_WRITE * 2, || true));
        assert!(!is_slow(SLOW_WRITE * 2, || false));
        assert!(!is_slow(SLOW_WRITE, || unreachable!("a fast write is not asked about")));
    }

    #[test]
    fn the_slower_the_disk_the_longer_it_is_left_alone() {
        assert_eq!(backoff(SLOW_WRITE), SLOW_WRITE * 100);
        assert_eq!(backoff(Duration::from_secs(3)), MAX_BACKOFF);
    }

    #[test]
    fn whoever_waited_is_known_to_have() {
        let timed = WriteTimer::begin();
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
        let again = WriteTimer::begin();
        let (_held, never) = std::sync::mpsc::channel::<()>();
        assert!(never.recv_timeout(Duration::from_millis(1)).is_err());
        assert!(again.has_waited() && (waited || timed.has_waited()));
    }

    #[test]
    fn a_slow_disk_is_left_to_the_thread_for_a_while() {
        let mut pace = DiskLatency::default();
        let now = Instant::now();
        assert!(pace.allows_inline_write(now));
        pace.observe(&WriteTimer { began: now.checked_sub(SLOW_WRITE * 2).unwrap(), switches_before: None });
        assert!(!pace.allows_inline_write(now) && pace.allows_inline_write(now + MAX_BACKOFF * 2));
        pace.observe(&WriteTimer::begin());
        assert!(pace.allows_inline_write(Instant::now()));
    }
}
