//! When a breaker opens and for how long.

use std::time::Duration;

/// Faults in a row that open the breaker. More than the calls that one crash usually takes down, and few
/// enough to spare the sixth caller a time-out. Set with [`BreakerSettings::failures`].
pub const DEFAULT_FAILURES: u32 = 5;

/// The time within which the faults must occur: two rounds of the default timeout, so that a plugin which
/// only ever times out opens the breaker too. Set with [`BreakerSettings::window`].
pub const DEFAULT_WINDOW: Duration = Duration::from_secs(60);

/// How long an open breaker refuses calls. About as long as a restart with its backoff takes; a probe that
/// comes too early costs one call. Set with [`BreakerSettings::open_for`].
pub const DEFAULT_OPEN_FOR: Duration = Duration::from_secs(10);

/// When a breaker opens and for how long. One answered probe closes it, and it is open as long each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Faults in a row that open it, from 1 to 1000. Default [`DEFAULT_FAILURES`].
    pub failures: u32,
    /// The time within which they must occur. Default [`DEFAULT_WINDOW`].
    pub window: Duration,
    /// How long it stays open before one call may try, at most a day. Default [`DEFAULT_OPEN_FOR`].
    pub open_for: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: DEFAULT_FAILURES, window: DEFAULT_WINDOW, open_for: DEFAULT_OPEN_FOR }
    }
}

impl From<BreakerSettings> for talon_breaker::BreakerSettings {
    fn from(BreakerSettings { failures, window, open_for }: BreakerSettings) -> Self {
        Self { failures, window, open_for, open_max: open_for, successes: 1, trial_every: Duration::ZERO }
    }
}
