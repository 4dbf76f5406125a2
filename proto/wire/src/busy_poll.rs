//! Busy polling for answers that arrive sooner than a sleeping core wakes up.
//!
//! An idle thread sleeps, and its core with it. Measured on idle machines of two cores, waking up takes 10 to
//! 40 µs, which is as long as a whole small call to a plugin. So a task that expects an answer within a short
//! time polls for it instead of sleeping. Hypervisors do the same for the cores of their guests (KVM calls it
//! halt polling). As there, the previous answer predicts the next one: after a slow answer there is no busy
//! polling, until one arrives within the limit again.
//!
//! On a busy machine the core has other work, and polling only takes it away: it is measured how long
//! yielding the core to other threads takes, which on an idle core is less than a microsecond. When a thread
//! with much to do ran meanwhile, polling stops for a pause, which doubles while that keeps happening.
//! [`BusyPollCounts`] says how often it helped, and how often not.
//!
//! So it costs one core at most the limit per call, and nothing where plugins are slow. All other work has
//! precedence: tasks of the same runtime, because it polls when the runtime would sleep, and other threads on
//! the same core, to which it yields at each poll. Only one task in a process polls at a time.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::yield_now;

/// Whether a task of this process is polling. A second one would only poll the same runtime.
static POLLING: AtomicBool = AtomicBool::new(false);

/// Yielding the core takes this long only if a thread ran on it that has more to do than to answer a small
/// call: the system call itself takes less than a microsecond, the answer some ten, and the scheduler's
/// slices are milliseconds.
const CONTENDED_YIELD: Duration = Duration::from_micros(500);
/// How long no task polls after another thread needed the core: some hundred small calls at first, so that a
/// single coincidence costs little, and doubling up to a second, after which it is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

static LOAD: Mutex<CoreLoad> = Mutex::new(CoreLoad::new());
/// Whether polling is paused: read at each call, before the lock.
static PAUSED: AtomicBool = AtomicBool::new(false);

static FOUND: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(0);
static CONTENDED: AtomicU64 = AtomicU64::new(0);

/// How busy polling ended in this process so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPollCounts {
    /// The answer came.
    pub found: u64,
    /// It did not come within the limit.
    pub missed: u64,
    /// Another thread needed the core: a pause began.
    pub contended: u64,
    /// Whether there is a pause now.
    pub paused: bool,
}

impl BusyPollCounts {
    /// The counts of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let [found, missed, contended] =
            [&FOUND, &MISSED, &CONTENDED].map(|count| count.load(Ordering::Relaxed));
        let paused = PAUSED.load(Ordering::Relaxed) && LOAD.lock().is_paused(Instant::now());
        Self { found, missed, contended, paused }
    }
}

/// Whether other threads need the cores.
#[derive(Debug)]
struct CoreLoad {
    /// When polling may be tried again.
    until: Option<Instant>,
    pause: Duration,
}

impl CoreLoad {
    const fn new() -> Self {
        Self { until: None, pause: FIRST_PAUSE }
    }

    fn is_paused(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Another thread ran while this one yielded.
    fn contended(&mut self, now: Instant) {
        self.until = Some(now + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// An answer was found without that.
    fn idle(&mut self) {
        *self = Self::new();
    }
}

/// Whether a task may poll now.
fn may_poll(now: Instant) -> bool {
    !PAUSED.load(Ordering::Relaxed) || !LOAD.lock().is_paused(now)
}

/// Busy polling for the answers of one peer, while they arrive within the limit.
#[derive(Debug)]
pub struct BusyPoll {
    limit: Duration,
    /// [`CONTENDED_YIELD`]
    contended_yield: Duration,
    /// Whether the last answer was fast; at first false.
    expected: AtomicBool,
}

impl BusyPoll {
    /// Polls for at most this time: a few times the duration of a small call. For slower answers the wake-up
    /// time does not matter, while the core may be needed elsewhere.
    #[must_use]
    pub fn for_up_to(limit: Duration) -> Self {
        Self { limit, contended_yield: CONTENDED_YIELD, expected: AtomicBool::new(false) }
    }

    /// Waits for an answer. It polls up to the limit if the last answer was fast and no other task is
    /// polling. A large future should be pinned by the caller, because it is copied otherwise.
    pub async fn wait<F: Future>(&self, answer: F) -> F::Output {
        let began = Instant::now();
        let mut answer = pin!(answer);
        let early =
            match (self.expected.load(Ordering::Relaxed) && may_poll(began)).then(PollPermit::take).flatten()
            {
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
                FOUND.fetch_add(1, Ordering::Relaxed);
                if PAUSED.swap(false, Ordering::Relaxed) {
                    LOAD.lock().idle();
                }
                return Some(answer);
            }
            // The answer may come from another thread on this core.
            let yielded = Instant::now();
            std::thread::yield_now();
            let now = Instant::now();
            if now.duration_since(yielded) >= self.contended_yield {
                CONTENDED.fetch_add(1, Ordering::Relaxed);
                LOAD.lock().contended(now);
                PAUSED.store(true, Ordering::Relaxed);
                return None;
            }
            // Resumes once the runtime has checked for I/O events.
            yield_now().await;
        }
        MISSED.fetch_add(1, Ordering::Relaxed);
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
    // Promises: SPEED-6, SPEED-9
    #[test]
    fn who_answers_soon_is_looked_for_by_one_at_a_time() {
        // However long other threads run meanwhile.
        let awake = BusyPoll { contended_yield: Duration::MAX, ..BusyPoll::for_up_to(Duration::MAX) };
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

        // Other threads need the core: no task polls for a while, and the counts say so.
        let before = BusyPollCounts::of_process();
        assert!(!before.paused && before.found > 0);
        let busy = BusyPoll { contended_yield: Duration::ZERO, ..BusyPoll::for_up_to(Duration::MAX) };
        assert_ready_eq!(spawn(busy.wait(ready("at once"))).poll(), "at once");
        let mut answer = spawn(busy.wait(silent(3)));
        assert_pending!(answer.poll());
        assert!(!answer.is_woken());
        assert_ready_eq!(answer.poll(), "seen");
        let after = BusyPollCounts::of_process();
        assert_eq!((after.contended, after.found), (before.contended + 1, before.found));
        // The pause may be over on a slow machine.
        LOAD.lock().until = Some(Instant::now() + LONGEST_PAUSE * 1000);
        assert!(BusyPollCounts::of_process().paused);
        let mut next = spawn(awake.wait(silent(2)));
        assert_pending!(next.poll());
        assert!(!next.is_woken());
    }

    // Promises: SPEED-9
    #[test]
    fn a_pause_doubles_while_others_need_the_core_and_ends_with_an_answer_that_was_found() {
        let (now, mut load) = (Instant::now(), CoreLoad::new());
        assert!(!load.is_paused(now));
        let mut pauses = Vec::new();
        for _ in 0..10 {
            load.contended(now);
            pauses.push(load.until.unwrap() - now);
        }
        assert_eq!(pauses[..3], [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4]);
        assert_eq!(pauses[9], LONGEST_PAUSE);
        assert!(load.is_paused(now) && !load.is_paused(now + LONGEST_PAUSE));
        load.idle();
        load.contended(now);
        assert_eq!(load.until, Some(now + FIRST_PAUSE));
    }
}
