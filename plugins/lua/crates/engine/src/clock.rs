//! The deadline of a call, and what passes it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// How many interrupts come between two looks at the clock, while no time passes between them. An interrupt comes at every loop and call of
/// a script: 64 of them take some microseconds, and a look makes each of them a third longer.
const INTERRUPTS_PER_LOOK: u32 = 64;

/// Ends the call of a script from another thread, at its next step.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Ends the call.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a call has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Deadline,
    Cancelled,
}

/// The clock of one machine. Once it has stopped a call, it says so until the machine is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock(Rc<ClockState>);

#[derive(Debug, Default)]
struct ClockState {
    deadline: Cell<Duration>,
    stop: Cell<Option<Stop>>,
    cancel: RefCell<CancelFlag>,
    sampler: ClockSampler,
}

/// When interrupts look at the clock.
#[derive(Debug, Default)]
struct ClockSampler {
    /// How many of them come before the next look.
    left: Cell<u32>,
    last_look: Cell<Duration>,
}

impl ClockSampler {
    /// Whether this one looks.
    fn is_due(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left == 0
    }

    /// A look found this time. Where it has moved, a long operation may lie between two interrupts: the next one looks as well.
    fn looked(&self, now: Duration) {
        let moved = self.last_look.replace(now) != now;
        self.left.set(if moved { 0 } else { INTERRUPTS_PER_LOOK });
    }
}

/// What is raised in a script whose time is over, or whose call was cancelled.
pub(crate) fn time_is_over() -> mlua::Error {
    mlua::Error::RuntimeError("the time of the call is over".to_owned())
}

/// The time since some moment. The coarse clock: it is asked often while a script runs, answers in a few nanoseconds, and is off by
/// some milliseconds.
fn now() -> Duration {
    let clock = ClockId::CLOCK_MONOTONIC_COARSE;
    clock_gettime(clock)
        .or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC))
        .map_or(Duration::MAX, Duration::from)
}

impl Clock {
    /// A call begins.
    pub(crate) fn start(&self, limit: Duration, cancel: &CancelFlag) {
        self.0.deadline.set(now().saturating_add(limit));
        self.0.cancel.replace(cancel.clone());
        self.0.sampler.left.set(0);
    }

    /// Whether the call has to end. It stays so.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.look(true)
    }

    /// Whether the call has to end, for an interrupt: it looks at the time now and then, and always at whether the call was
    /// cancelled.
    pub(crate) fn interrupted(&self) -> Option<Stop> {
        self.look(self.0.sampler.is_due())
    }

    fn look(&self, at_time: bool) -> Option<Stop> {
        let state = &self.0;
        if state.stop.get().is_none() {
            if state.cancel.borrow().is_cancelled() {
                state.stop.set(Some(Stop::Cancelled));
            } else if at_time {
                let now = now();
                state.sampler.looked(now);
                if now >= state.deadline.get() {
                    state.stop.set(Some(Stop::Deadline));
                }
            }
        }
        state.stop.get()
    }

    /// What stopped it, without looking at the time again.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.0.stop.get()
    }

    /// Waits for something that does not count.
    pub(crate) fn pause<T>(&self, wait: impl FnOnce() -> T) -> T {
        let before = now();
        let waited = wait();
        let deadline = &self.0.deadline;
        deadline.set(deadline.get().saturating_add(now().saturating_sub(before)));
        waited
    }
}

#[cfg(test)]
mod tests {
    use std::iter::from_fn;
    use std::time::Duration;

    use super::{ClockSampler, INTERRUPTS_PER_LOOK};

    /// After how many interrupts the next one looks.
    fn interrupts_before_a_look(sampler: &ClockSampler) -> usize {
        from_fn(|| (!sampler.is_due()).then_some(())).count()
    }

    // Promises: LUA-88
    #[test]
    fn interrupts_look_rarely_while_no_time_passes_and_each_where_it_does() {
        let sampler = ClockSampler::default();
        assert_eq!(interrupts_before_a_look(&sampler), 0, "the first one looks");
        for milliseconds in [4, 8, 16] {
            sampler.looked(Duration::from_millis(milliseconds));
            assert_eq!(interrupts_before_a_look(&sampler), 0, "time passes");
        }
        for _ in 0..2 {
            sampler.looked(Duration::from_millis(16));
            assert_eq!(interrupts_before_a_look(&sampler), INTERRUPTS_PER_LOOK as usize);
        }
    }
}
