//! Waiting for an answer with open eyes, where it comes sooner than a sleeping core wakes.
//!
//! A thread that has nothing to do sleeps, and its core with it: measured on idle machines of two cores, the way back takes 10
//! to 40 µs, which is as long as a small call to a plugin takes altogether. So whoever waits for an answer that is expected within
//! a moment looks for it again and again instead of going to sleep. Hypervisors do the same for the cores of their guests (KVM
//! calls it halt polling), and as there what comes is expected to be as what came: after an answer that took longer nobody waits
//! awake for the next one, until one comes within the moment again.
//!
//! So it costs at most a moment of one core a call, and nothing where plugins take their time. Everybody else goes first: tasks of
//! the same runtime, because it looks where the runtime would sleep, and whatever else may run on the same core, to which
//! that is given up at each look. And one in a process waits so at most.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// One waits awake in this process. A second one would only look to the same runtime as well.
static ONE: AtomicBool = AtomicBool::new(false);

/// Whether the answers of somebody come within a moment.
#[derive(Debug)]
pub struct Awake {
    moment: Duration,
    /// Not of somebody who never answered.
    expected: AtomicBool,
}

impl Awake {
    /// Waits awake for so long at most: a few times what a small call takes. For what takes longer a wake-up makes no difference
    /// that anybody would notice, while the core may be missing elsewhere.
    #[must_use]
    pub fn for_up_to(moment: Duration) -> Self {
        Self { moment, expected: AtomicBool::new(false) }
    }

    /// Waits for an answer, awake for up to the moment if the last one came within it and nobody else does. One that is large had
    /// better come pinned: it is copied otherwise.
    pub async fn wait<F: Future>(&self, answer: F) -> F::Output {
        let began = Instant::now();
        let mut answer = pin!(answer);
        let early = match self.expected.load(Ordering::Relaxed).then(Turn::take).flatten() {
            Some(_turn) => self.look(began, answer.as_mut()).await,
            None => None,
        };
        let answer = match early {
            Some(answer) => answer,
            None => answer.await,
        };
        let soon = began.elapsed() < self.moment;
        // Mostly it is as before, and then nobody else's cache is disturbed.
        if self.expected.load(Ordering::Relaxed) != soon {
            self.expected.store(soon, Ordering::Relaxed);
        }
        answer
    }

    async fn look<F: Future>(&self, began: Instant, mut answer: std::pin::Pin<&mut F>) -> Option<F::Output> {
        while began.elapsed() < self.moment {
            if let Poll::Ready(answer) = poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
                return Some(answer);
            }
            // Whatever else may run on this core may be what is waited for.
            std::thread::yield_now();
            // Comes back once the runtime has looked for news from outside.
            yield_now().await;
        }
        None
    }
}

/// The right to wait awake, until it is dropped.
struct Turn;

impl Turn {
    fn take() -> Option<Self> {
        (!ONE.swap(true, Ordering::Acquire)).then(|| Self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        ONE.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio_test::task::spawn;
    use tokio_test::{assert_pending, assert_ready_eq};

    use super::*;

    /// Ready when it was asked so often, and wakes nobody: only who looks again and again sees it.
    fn silent(mut looks: u32) -> impl Future<Output = &'static str> {
        poll_fn(move |_| {
            looks = looks.saturating_sub(1);
            if looks == 0 { Poll::Ready("seen") } else { Poll::Pending }
        })
    }

    // One test, because there is one in a process who waits awake.
    #[test]
    fn who_answers_soon_is_looked_for_by_one_at_a_time() {
        let awake = Awake::for_up_to(Duration::MAX);
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

        // The right to it is given back, also by a call that is given up.
        let mut given_up = spawn(awake.wait(pending::<()>()));
        assert_pending!(given_up.poll());
        assert!(given_up.is_woken());
        drop(given_up);
        let mut next = spawn(awake.wait(silent(2)));
        assert_pending!(next.poll());
        assert_ready_eq!(next.poll(), "seen");

        // Whose moment is over before it began never answers within it.
        let slow = Awake::for_up_to(Duration::ZERO);
        for _ in 0..2 {
            let mut answer = spawn(slow.wait(silent(2)));
            assert_pending!(answer.poll());
            assert!(!answer.is_woken());
            assert_ready_eq!(answer.poll(), "seen");
        }
    }
}
