//! When a provider is left alone, and what brings it back: the settings of a [`CircuitBreaker`].
//!
//! In its half-open state one trial at a time is admitted: a probe, or a request that no other provider can
//! answer. A single success closes nothing, so that an unstable provider does not affect requests each time;
//! until the breaker closes, the router asks the provider last.
//!
//! A request counts once, with all its retries; otherwise one request that finds a provider slow would open
//! the breaker.

use std::time::Duration;

pub use talon_breaker::{BreakerState, CircuitBreaker, Permit, Verdict};

/// Consecutive failures that open it: the founding projects' number.
pub const DEFAULT_FAILURES: u32 = 3;

/// The first open time: the founding projects' number.
pub const DEFAULT_OPEN_FOR: Duration = Duration::from_secs(60);

/// The longest open time: a provider that was down for the night is back ten minutes after it recovers.
pub const DEFAULT_OPEN_MAX: Duration = Duration::from_secs(600);

/// Consecutive successes that close it: one may be chance.
pub const DEFAULT_SUCCESSES: u32 = 2;

/// The time between two trials in the half-open state, so that two successes are not from the same moment.
pub const DEFAULT_TRIAL_EVERY: Duration = Duration::from_secs(5);

/// When a breaker opens, for how long, and what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it, from 1 to 1000. Default [`DEFAULT_FAILURES`].
    pub failures: u32,
    /// How long it is open for the first time, at most a day. Default [`DEFAULT_OPEN_FOR`].
    pub open_for: Duration,
    /// How long it is open at most, up to a day. Default [`DEFAULT_OPEN_MAX`].
    pub open_max: Duration,
    /// Successes in a row that close it; 0 is taken for 1. Default [`DEFAULT_SUCCESSES`].
    pub successes: u32,
    /// The time between two trials, at most a day. Default [`DEFAULT_TRIAL_EVERY`].
    pub trial_every: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: DEFAULT_FAILURES,
            open_for: DEFAULT_OPEN_FOR,
            open_max: DEFAULT_OPEN_MAX,
            successes: DEFAULT_SUCCESSES,
            trial_every: DEFAULT_TRIAL_EVERY,
        }
    }
}

impl From<BreakerSettings> for talon_breaker::BreakerSettings {
    /// The age of failures does not matter: requests to a provider may be rare.
    fn from(settings: BreakerSettings) -> Self {
        let BreakerSettings { failures, open_for, open_max, successes, trial_every } = settings;
        Self { failures, window: Duration::MAX, open_for, open_max, successes, trial_every }
    }
}

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub from: BreakerState,
    /// After.
    pub to: BreakerState,
}
