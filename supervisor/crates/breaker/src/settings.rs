//! When a breaker opens, for how long, and what closes it.

use std::time::Duration;

/// The most failures that are recorded: each takes 16 bytes. A larger [`BreakerSettings::failures`] counts as
/// this.
pub const MAX_FAILURES: u32 = 1000;

/// The longest time of a setting other than the window, so that sums of such times do not overflow the clock.
/// A longer one counts as this.
pub const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// When a breaker opens, for how long, and what closes it. The defaults are those of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it, from 1 to [`MAX_FAILURES`].
    pub failures: u32,
    /// The time within which they must occur; [`Duration::MAX`] if their age does not matter.
    pub window: Duration,
    /// How long it is open for the first time, at most [`MAX_TIME`].
    pub open_for: Duration,
    /// How long it is open at most: the time doubles with each failed trial. At least `open_for`, at most
    /// [`MAX_TIME`].
    pub open_max: Duration,
    /// Successful trials in a row that close it; 0 counts as 1.
    pub successes: u32,
    /// The time until the next trial is due after one has ended, at most [`MAX_TIME`]. Calls need not wait
    /// for it.
    pub trial_every: Duration,
}

impl BreakerSettings {
    /// The settings with each value within its bounds.
    pub(crate) fn clamped(self) -> Self {
        let open_for = self.open_for.min(MAX_TIME);
        Self {
            failures: self.failures.clamp(1, MAX_FAILURES),
            window: self.window,
            open_for,
            open_max: self.open_max.clamp(open_for, MAX_TIME),
            successes: self.successes.max(1),
            trial_every: self.trial_every.min(MAX_TIME),
        }
    }
}
