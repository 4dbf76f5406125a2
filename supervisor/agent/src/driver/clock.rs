//! The time that a turn has used, without the time for which it waited for a person.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// A turn's clock. Clones share one clock.
///
/// It is paused while a call waits for approval and nothing else of the turn runs: a person who is away takes
/// no time from the model, but a tool that hangs does.
#[derive(Debug, Clone)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// Notified whenever the clock pauses or continues.
    changed: watch::Sender<()>,
    /// The clock of the outer turn.
    outer: Option<Clock>,
}

#[derive(Debug)]
struct State {
    counted: Duration,
    since: Instant,
    waiting: usize,
    working: usize,
}

impl State {
    fn is_paused(&self) -> bool {
        self.waiting > 0 && self.working == 0
    }

    fn elapsed(&self, now: Instant) -> Duration {
        if self.is_paused() {
            return self.counted;
        }
        self.counted.saturating_add(now.saturating_duration_since(self.since))
    }
}

/// The state of a call.
#[derive(Debug, Clone, Copy)]
enum HoldKind {
    Waiting,
    Working,
}

/// Counts a call as waiting or working until it is dropped.
#[derive(Debug)]
#[must_use = "the clock counts what is held"]
pub struct ClockHold {
    clock: Clock,
    what: HoldKind,
}

impl Drop for ClockHold {
    fn drop(&mut self) {
        self.clock.change(None, Some(self.what));
    }
}

impl State {
    fn count(&mut self, what: HoldKind) -> &mut usize {
        match what {
            HoldKind::Waiting => &mut self.waiting,
            HoldKind::Working => &mut self.working,
        }
    }
}

impl Clock {
    /// Starts a clock. `outer` is the clock of the outer turn: the call that runs this turn counts as waiting
    /// there while this clock is paused.
    #[must_use]
    pub fn start(outer: Option<Self>) -> Self {
        let state = State { counted: Duration::ZERO, since: Instant::now(), waiting: 0, working: 0 };
        Self(Arc::new(Inner { state: Mutex::new(state), changed: watch::Sender::new(()), outer }))
    }

    /// The time used so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.state.lock().elapsed(Instant::now())
    }

    /// Counts a call that waits for a person.
    pub fn wait(&self) -> ClockHold {
        self.hold(HoldKind::Waiting)
    }

    /// Counts a call that runs.
    pub fn work(&self) -> ClockHold {
        self.hold(HoldKind::Working)
    }

    fn hold(&self, what: HoldKind) -> ClockHold {
        self.change(Some(what), None);
        ClockHold { clock: self.clone(), what }
    }

    /// Returns when this much time is used.
    pub async fn reached(&self, most: Duration) {
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let (stands, elapsed) = {
                let state = self.0.state.lock();
                (state.is_paused(), state.elapsed(Instant::now()))
            };
            if elapsed >= most {
                return;
            }
            // This clock owns the sender, so `changed` cannot fail.
            if stands {
                drop(changed.changed().await);
            } else {
                drop(tokio::time::timeout(most - elapsed, changed.changed()).await);
            }
        }
    }

    fn change(&self, more: Option<HoldKind>, less: Option<HoldKind>) {
        let (before, after) = {
            let mut state = self.0.state.lock();
            let (now, before) = (Instant::now(), state.is_paused());
            state.counted = state.elapsed(now);
            state.since = now;
            if let Some(what) = more {
                *state.count(what) += 1;
            }
            if let Some(what) = less {
                let count = state.count(what);
                *count = count.saturating_sub(1);
            }
            (before, state.is_paused())
        };
        if before == after {
            return;
        }
        self.0.changed.send_replace(());
        if let Some(outer) = &self.0.outer {
            let (more, less) = if after {
                (HoldKind::Waiting, HoldKind::Working)
            } else {
                (HoldKind::Working, HoldKind::Waiting)
            };
            outer.change(Some(more), Some(less));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_only_while_nothing_but_a_person_is_waited_for() {
        let clock = Clock::start(None);
        tokio::time::advance(SECOND).await;
        let waiting = clock.wait();
        tokio::time::advance(SECOND).await;
        assert_eq!(clock.elapsed(), SECOND);
        let working = clock.work();
        tokio::time::advance(SECOND).await;
        assert_eq!(clock.elapsed(), 2 * SECOND, "another call runs");
        drop(working);
        tokio::time::advance(SECOND).await;
        assert_eq!(clock.elapsed(), 2 * SECOND);
        drop(waiting);
        tokio::time::advance(SECOND).await;
        assert_eq!(clock.elapsed(), 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_turn_within_waits_for_stops_the_outer_one_too() {
        let outer = Clock::start(None);
        let call = outer.work();
        let inner = Clock::start(Some(outer.clone()));
        let waiting = inner.wait();
        tokio::time::advance(SECOND).await;
        assert_eq!((inner.elapsed(), outer.elapsed()), (Duration::ZERO, Duration::ZERO));
        drop(waiting);
        tokio::time::advance(SECOND).await;
        assert_eq!((inner.elapsed(), outer.elapsed()), (SECOND, SECOND));
        drop(call);
        assert!(!outer.0.state.lock().is_paused());
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_reached_later_by_as_much_as_it_stood() {
        let clock = Clock::start(None);
        let began = Instant::now();
        let waiting = clock.wait();
        let reached = tokio::spawn({
            let clock = clock.clone();
            async move { clock.reached(2 * SECOND).await }
        });
        tokio::time::sleep(10 * SECOND).await;
        assert!(!reached.is_finished());
        drop(waiting);
        reached.await.expect("no panic");
        assert_eq!(began.elapsed(), 12 * SECOND);
    }
}
