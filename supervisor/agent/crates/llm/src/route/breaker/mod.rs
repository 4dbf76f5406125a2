//! Keeps a provider out that keeps failing, and lets it back in by steps. A pure machine; the time is passed in.
//!
//! ```text
//!              `failures` in a row
//!   closed ─────────────────────────► open ◄──────────────────┐
//!     ▲                                │ its time is over,     │ a failure: the next time is twice as long,
//!     │                                ▼ and somebody tries    │ up to `open_max`
//!     └──── `successes` in a row ── half_open ─────────────────┘
//! ```
//!
//! Half open, one trial at a time is let through: a probe, or a request that nobody else can answer. A single success closes
//! nothing, so that a provider that comes and goes does not take the requests with it each time; until it is closed the router
//! asks it last.
//!
//! A request counts once: its retries are one failure, or three of them would take a provider out that one request found
//! slow. What was let in before a change of state says nothing afterwards.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Failures in a row that open it: the founding projects' number.
pub const DEFAULT_FAILURES: u32 = 3;

/// How long it is open for the first time: the founding projects' number.
pub const DEFAULT_OPEN_FOR: Duration = Duration::from_secs(60);

/// How long it is open at most: a provider that was down for the night is back ten minutes after it is.
pub const DEFAULT_OPEN_MAX: Duration = Duration::from_secs(600);

/// Successes in a row that close it: one may be chance.
pub const DEFAULT_SUCCESSES: u32 = 2;

/// The time between two trials while it is half open, so that two successes are not the same moment.
pub const DEFAULT_TRIAL_EVERY: Duration = Duration::from_secs(5);

/// No time of a breaker is longer: sums of a few such times stay far away from the end of any clock.
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

/// Where a breaker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Requests go through.
    Closed,
    /// None does.
    Open,
    /// One trial at a time.
    HalfOpen,
}

/// What a request, or a probe, said about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It answered.
    Well,
    /// It failed.
    Failed,
    /// Nothing: nobody waited for it, or it refused what was asked.
    Nothing,
}

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub from: BreakerState,
    /// After.
    pub to: BreakerState,
}

/// Something that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    epoch: u64,
    trial: bool,
}

impl Admitted {
    /// Let in to see whether the provider is back.
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

/// The machine.
#[derive(Debug, Clone)]
pub struct Breaker {
    settings: BreakerSettings,
    phase: Phase,
    /// Times that it opened since it was closed.
    openings: u32,
    /// Changes of state.
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

    /// How long a request has to stay away; zero if it may come, or may as soon as the trial under way is over.
    #[must_use]
    pub fn retry_in(&self, now: Instant) -> Duration {
        match self.phase {
            Phase::Closed { .. } | Phase::HalfOpen { .. } => Duration::ZERO,
            Phase::Open { until } => until.saturating_duration_since(now),
        }
    }

    /// When the next probe is due; `None` if none is: it is closed, or a trial is under way.
    #[must_use]
    pub fn next_probe(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closed { .. } | Phase::HalfOpen { trial: true, .. } => None,
            Phase::Open { until } => Some(until),
            Phase::HalfOpen { trial: false, next, .. } => Some(next),
        }
    }

    /// Lets a request in, or not. When it is half open, a request waits for no time between trials: it is there now.
    pub fn admit(&mut self, now: Instant) -> (Option<Admitted>, Option<Change>) {
        let change = match self.phase {
            Phase::Closed { .. } => return (Some(Admitted { epoch: self.epoch, trial: false }), None),
            Phase::Open { until } if now < until => return (None, None),
            Phase::Open { .. } => Some(self.enter(Phase::HalfOpen { successes: 0, trial: true, next: now })),
            Phase::HalfOpen { trial: true, .. } => return (None, None),
            Phase::HalfOpen { ref mut trial, .. } => {
                *trial = true;
                None
            }
        };
        (Some(Admitted { epoch: self.epoch, trial: true }), change)
    }

    /// Lets a probe in if one is due.
    pub fn admit_probe(&mut self, now: Instant) -> (Option<Admitted>, Option<Change>) {
        match self.next_probe() {
            Some(due) if due <= now => self.admit(now),
            _ => (None, None),
        }
    }

    /// What was let in is over.
    pub fn settle(&mut self, admitted: Admitted, verdict: Verdict, now: Instant) -> Option<Change> {
        if admitted.epoch != self.epoch {
            return None;
        }
        let settings = self.settings;
        match (&mut self.phase, verdict) {
            (Phase::Closed { failures }, Verdict::Well) => *failures = 0,
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
                *successes += u32::from(verdict == Verdict::Well);
                if *successes >= settings.successes {
                    self.openings = 0;
                    return Some(self.enter(Phase::Closed { failures: 0 }));
                }
            }
            (Phase::Closed { .. }, Verdict::Nothing) | (Phase::Open { .. }, _) => {}
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
