//! The deadline of a call, and what passes it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

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
}

/// The time since some moment. The coarse clock: it is asked at every loop and call of a script, answers in a few nanoseconds, and
/// is off by some milliseconds.
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
    }

    /// Whether the call has to end. It stays so.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        let state = &self.0;
        if state.stop.get().is_none() {
            if state.cancel.borrow().is_cancelled() {
                state.stop.set(Some(Stop::Cancelled));
            } else if now() >= state.deadline.get() {
                state.stop.set(Some(Stop::Deadline));
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
