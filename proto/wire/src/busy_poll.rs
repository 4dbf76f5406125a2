//! Busy polling for answers that arrive sooner than a sleeping core wakes up.
//!
//! An idle thread sleeps, and its core with it. Measured on idle machines of two cores, waking up takes 10 to
//! 40 µs, which is as long as a whole small call to a plugin. So a task that expects an answer within a short
//! time polls for it instead of sleeping. Hypervisors do the same for the cores of their guests (KVM calls it
//! halt polling). As there, the previous answer predicts the next one: after a slow answer there is no busy
//! polling, until one arrives within the limit again.
//!
//! So it costs one core at most the limit per call, and nothing where plugins are slow. All other work has
//! precedence: tasks of the same runtime, because it polls when the runtime would sleep, and other threads on
//! the same core, to which it yields at each poll. Only one task in a process polls at a time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// Whether a task of this process is polling. A second one would only poll the same runtime.
static POLLING: AtomicBool = AtomicBool::new(false);

/// Busy polling for the answers of one peer, while they arrive within the limit.
#[derive(Debug)]
pub struct BusyPoll {
    limit: Duration,
    /// Whether the last answer was fast; at first false.
    expected: AtomicBool,
}

impl BusyPoll {
    /// Polls for at most this time: a few times the duration of a small call. For slower answers the wake-up
    /// time does not matter, while the core may be needed elsewhere.
    #[must_use]
    pub fn for_up_to(limit: Duration) -> Self {
        Self { limit, expected: AtomicBool::new(false) }
    }

    /// Waits for an answer. It polls up to the limit if the last answer was fast and no other task is
    /// polling. A large future should be pinned by the caller, because it is copied otherwise.
    pub async fn wait<F: Future>(&self, answer: F) -> F::Output {
        let began = Instant::now();
        let mut answer = pin!(answer);
        let early = match self.expected.load(Ordering::Relaxed).then(PollPermit::take).flatten() {
            Some(_turn) => self.poll_until(began, answer.as_mut()).await,
            None => None,
        };
        let answer = match early {
            Some(answer) => answer,
            None => answer.await,
        };
        let soon = began.elapsed() < self.limit;
        // Usually unchanged; then the write, which would invalidate other cores' caches, is skipped.
        if self.expected.load(Ordering::Relaxed) != soon {
            self.expected.store(soon, Ordering::Relaxed);
        }
        answer
    }

    async fn poll_until<F: Future>(
        &self,
        began: Instant,
        mut answer: std::pin::Pin<&mut F>,
    ) -> Option<F::Output> {
        while began.elapsed() < self.limit {
            if let Poll::Ready(answer) = poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
                return Some(answer);
            }
            // The answer may come from another thread on this core.
            std::thread::yield_now();
            // Resumes once the runtime has checked for I/O events.
            yield_now().await;
        }
        None
    }
}

/// The permit to poll, released on drop.
struct PollPermit;

impl PollPermit {
    fn take() -> Option<Self> {
        (!POLLING.swap(true, Ordering::Acquire)).then(|| Self)
    }
}

impl Drop for PollPermit {
    fn drop(&mut self) {
        POLLING.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio_test::task::spawn;
    use tokio_test::{assert_pending, assert_ready_eq};

    use super::*;

    /// Becomes ready after this many polls, without a wake-up: only busy polling sees it.
    fn silent(mut looks: u32) -> impl Future<Output = &'static str> {
        poll_fn(move |_| {
            looks = looks.saturating_sub(1);
            if looks == 0 { Poll::Ready("seen") } else { Poll::Pending }
        })
    }

    // A single test, because only one task in a process polls.
    // Promises: SPEED-6
    #[test]
    fn who_answers_soon_is_looked_for_by_one_at_a_time() {
        let awake = BusyPoll::for_up_to(Duration::MAX);
        let mut first = spawn(awake.wait(silent(3)));
        assert_pending!(first.poll());
        assert!(!first.is_woken(), "nothing is expected of somebody who never answered");
        drop(first);

        assert_ready_eq!(spawn(awake.wait(ready("at once"))).poll(), "at once");
        let mut expected = spawn(awake.wait(silent(3)));
        assert_pending!(expected.poll());
        assert!(expected.is_woken());
        let mut second = spawn(awake.wait(silent(2)));
        assert_pending!(second.poll());
        assert!(!second.is_woken(), "somebody waits awake already");
        assert_pending!(expected.poll());
        assert_ready_eq!(expected.poll(), "seen");

        // The permit is also released by a call that is cancelled.
        let mut given_up = spawn(awake.wait(pending::<()>()));
        assert_pending!(given_up.poll());
        assert!(given_up.is_woken());
        drop(given_up);
        let mut next = spawn(awake.wait(silent(2)));
        assert_pending!(next.poll());
        assert_ready_eq!(next.poll(), "seen");

        // With a limit of zero no answer is fast enough.
        let slow = BusyPoll::for_up_to(Duration::ZERO);
        for _ in 0..2 {
            let mut answer = spawn(slow.wait(silent(2)));
            assert_pending!(answer.poll());
            assert!(!answer.is_woken());
            assert_ready_eq!(answer.poll(), "seen");
        }
    }
}
