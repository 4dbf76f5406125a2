//! A circuit breaker for providers, with gradual recovery. A pure state machine; time is passed in.
//!
//! ```text
//!              `failures` in a row
//!   closed ─────────────────────────► open ◄──────────────────┐
//!     ▲                                │ its time is over,     │ a failure: the next time is twice as long,
//!     │                                ▼ and a trial starts    │ up to `open_max`
//!     └──── `successes` in a row ── half_open ─────────────────┘
//! ```
//!
//! In the half-open state one trial at a time is admitted: a probe, or a request that no other provider can answer. A
//! single success closes nothing, so that an unstable provider does not affect requests each time; until the breaker
//! closes, the router asks the provider last.
//!
//! A request counts once, with all its retries; otherwise one request that finds a provider slow would open the
//! breaker. Results of what was admitted before a change of state are ignored.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

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

/// The longest time of a breaker, so that sums of such times do not overflow the clock.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// When a breaker opens, for how long, and what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it; 0 is taken for 1. Default [`DEFAULT_FAILURES`].
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

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Requests are admitted.
    Closed,
    /// No request is admitted.
    Open,
    /// One trial at a time.
    HalfOpen,
}

/// What a request or probe showed about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Healthy,
    /// It failed.
    Failed,
    /// Nothing: the request was dropped, or the provider rejected it.
    Inconclusive,
}

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub from: BreakerState,
    /// After.
    pub to: BreakerState,
}

/// An admitted request or probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    epoch: u64,
    trial: bool,
}

impl Permit {
    /// Whether it was admitted as a trial.
    #[must_use]
    pub fn is_trial(self) -> bool {
        self.trial
    }
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed { failures: u32 },
    Open { until: Instant },
    HalfOpen { successes: u32, trial: bool, next: Instant },
}

/// A circuit breaker.
#[derive(Debug, Clone)]
pub struct Breaker {
    settings: BreakerSettings,
    phase: Phase,
    /// How often it opened since it was closed.
    openings: u32,
    /// The number of state changes.
    epoch: u64,
}

impl Breaker {
    /// A closed one.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        let settings = BreakerSettings {
            failures: settings.failures.max(1),
            open_for: settings.open_for.min(MAX_TIME),
            open_max: settings.open_max.min(MAX_TIME).max(settings.open_for.min(MAX_TIME)),
            successes: settings.successes.max(1),
            trial_every: settings.trial_every.min(MAX_TIME),
        };
        Self { settings, phase: Phase::Closed { failures: 0 }, openings: 0, epoch: 0 }
    }

    /// Where it is.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// How long requests are not admitted; zero if one is, or will be as soon as the running trial ends.
    #[must_use]
    pub fn retry_in(&self, now: Instant) -> Duration {
        match self.phase {
            Phase::Closed { .. } | Phase::HalfOpen { .. } => Duration::ZERO,
            Phase::Open { until } => until.saturating_duration_since(now),
        }
    }

    /// When the next probe is due; `None` if the breaker is closed, or a trial is running.
    #[must_use]
    pub fn next_probe(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closed { .. } | Phase::HalfOpen { trial: true, .. } => None,
            Phase::Open { until } => Some(until),
            Phase::HalfOpen { trial: false, next, .. } => Some(next),
        }
    }

    /// Admits a request, or not. In the half-open state a request need not wait between trials, since it is there
    /// already.
    pub fn admit(&mut self, now: Instant) -> (Option<Permit>, Option<Change>) {
        let change = match self.phase {
            Phase::Closed { .. } => return (Some(Permit { epoch: self.epoch, trial: false }), None),
            Phase::Open { until } if now < until => return (None, None),
            Phase::Open { .. } => Some(self.enter(Phase::HalfOpen { successes: 0, trial: true, next: now })),
            Phase::HalfOpen { trial: true, .. } => return (None, None),
            Phase::HalfOpen { ref mut trial, .. } => {
                *trial = true;
                None
            }
        };
        (Some(Permit { epoch: self.epoch, trial: true }), change)
    }

    /// Admits a probe if one is due.
    pub fn admit_probe(&mut self, now: Instant) -> (Option<Permit>, Option<Change>) {
        match self.next_probe() {
            Some(due) if due <= now => self.admit(now),
            _ => (None, None),
        }
    }

    /// Reports the result of an admitted request or probe.
    pub fn settle(&mut self, admitted: Permit, verdict: Verdict, now: Instant) -> Option<Change> {
        if admitted.epoch != self.epoch {
            return None;
        }
        let settings = self.settings;
        match (&mut self.phase, verdict) {
            (Phase::Closed { failures }, Verdict::Healthy) => *failures = 0,
            (Phase::Closed { failures }, Verdict::Failed) => {
                *failures = failures.saturating_add(1);
                if *failures >= settings.failures {
                    return Some(self.open(now));
                }
            }
            (Phase::HalfOpen { .. }, Verdict::Failed) => return Some(self.open(now)),
            (Phase::HalfOpen { successes, trial, next }, verdict) => {
                *trial = false;
                *next = now + settings.trial_every;
                *successes += u32::from(verdict == Verdict::Healthy);
                if *successes >= settings.successes {
                    self.openings = 0;
                    return Some(self.enter(Phase::Closed { failures: 0 }));
                }
            }
            (Phase::Closed { .. }, Verdict::Inconclusive) | (Phase::Open { .. }, _) => {}
        }
        None
    }

    fn open(&mut self, now: Instant) -> Change {
        let doublings = self.openings.min(31);
        let time = self.settings.open_for.saturating_mul(1 << doublings).min(self.settings.open_max);
        self.openings = self.openings.saturating_add(1);
        self.enter(Phase::Open { until: now + time })
    }

    fn enter(&mut self, phase: Phase) -> Change {
        let from = self.state();
        self.phase = phase;
        self.epoch = self.epoch.wrapping_add(1);
        Change { from, to: self.state() }
    }
}

#[cfg(test)]
mod tests;
