//! Counts deaths within the last window, as s6 and systemd do: *recent* deaths tell a temporary problem from
//! a broken program.

use std::collections::VecDeque;
use std::time::Duration;

use super::MachineTime;

/// The most deaths that are remembered; a larger `max_restarts` counts as this. A start takes a few
/// milliseconds at least, so more deaths do not fit into a reasonable window.
const MAX_REMEMBERED: usize = 4096;

/// The recent deaths of an instance.
#[derive(Debug, Clone)]
pub(crate) struct RestartCounter {
    window: Duration,
    /// As many as are needed to detect that there were too many.
    capacity: usize,
    deaths: VecDeque<MachineTime>,
}

impl RestartCounter {
    /// A counter that detects more than `max_restarts` deaths within `window`.
    pub(crate) fn new(window: Duration, max_restarts: u32) -> Self {
        let capacity = usize::try_from(max_restarts).unwrap_or(MAX_REMEMBERED).min(MAX_REMEMBERED) + 1;
        Self { window, capacity, deaths: VecDeque::new() }
    }

    /// Records a death and returns how many there were within the window, including this one.
    pub(crate) fn record(&mut self, now: MachineTime) -> u32 {
        self.forget_before(now);
        if self.deaths.len() == self.capacity {
            self.deaths.pop_front();
        }
        self.deaths.push_back(now);
        self.len()
    }

    /// How many deaths lie within the window that ends now.
    pub(crate) fn count(&self, now: MachineTime) -> u32 {
        let inside = self.deaths.iter().filter(|at| self.is_inside(**at, now)).count();
        u32::try_from(inside).unwrap_or(u32::MAX)
    }

    /// Whether there were more deaths than allowed.
    pub(crate) fn is_full(&self) -> bool {
        self.deaths.len() == self.capacity
    }

    /// Forgets all deaths, because an operator intervened.
    pub(crate) fn clear(&mut self) {
        self.deaths.clear();
    }

    fn forget_before(&mut self, now: MachineTime) {
        while self.deaths.front().is_some_and(|at| !self.is_inside(*at, now)) {
            self.deaths.pop_front();
        }
    }

    fn is_inside(&self, at: MachineTime, now: MachineTime) -> bool {
        now.saturating_sub(at) < self.window
    }

    fn len(&self) -> u32 {
        u32::try_from(self.deaths.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn deaths_leave_the_window_one_by_one() {
        let mut tally = RestartCounter::new(5 * MINUTE, 3);
        assert_eq!(tally.record(MINUTE), 1);
        assert_eq!(tally.record(2 * MINUTE), 2);
        assert_eq!(tally.count(5 * MINUTE), 2);
        assert_eq!(tally.count(6 * MINUTE), 1);
        assert_eq!(tally.record(7 * MINUTE), 1);
    }

    #[test]
    fn it_is_full_at_one_death_more_than_allowed() {
        let mut tally = RestartCounter::new(5 * MINUTE, 2);
        tally.record(MINUTE);
        tally.record(MINUTE);
        assert!(!tally.is_full());
        assert_eq!(tally.record(MINUTE), 3);
        assert!(tally.is_full());
    }

    #[test]
    fn it_never_grows_past_its_room() {
        let mut tally = RestartCounter::new(Duration::MAX, u32::MAX);
        for at in 0..10_000 {
            tally.record(Duration::from_millis(at));
        }
        assert_eq!(tally.deaths.len(), MAX_REMEMBERED + 1);
        assert!(tally.deaths.capacity() < 4 * MAX_REMEMBERED);
    }
}
