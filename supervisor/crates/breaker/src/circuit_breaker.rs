//! The state machine.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::settings::BreakerSettings;
use crate::state::BreakerState;

/// What the outcome of a call says about the one that was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Healthy,
    /// It failed.
    Failed,
    /// Nothing: it was not called, or the caller gave up.
    Inconclusive,
}

/// The permit of one admitted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    epoch: u64,
    trial: bool,
}

impl Permit {
    /// The permit that [`CircuitBreaker::admit`] gives while [`CircuitBreaker::healthy_epoch`] is this epoch.
    #[must_use]
    pub fn for_healthy_epoch(epoch: u64) -> Self {
        Self { epoch, trial: false }
    }

    /// Whether it was admitted as a trial.
    #[must_use]
    pub fn is_trial(self) -> bool {
        self.trial
    }
}

#[derive(Debug, Clone)]
enum Phase {
    /// The failures in a row, oldest first, at most `failures` of them.
    Closed {
        failures: VecDeque<Instant>,
    },
    Open {
        until: Instant,
    },
    HalfOpen {
        successes: u32,
        trial: bool,
        next: Instant,
    },
}

impl Phase {
    const HEALTHY: Self = Self::Closed { failures: VecDeque::new() };
}

/// A circuit breaker.
#[derive(Debug, Clone)]
pub struct CircuitBreaker {
    settings: BreakerSettings,
    phase: Phase,
    /// How often it opened since it was closed.
    openings: u32,
    /// The number of changes of state.
    epoch: u64,
}

impl CircuitBreaker {
    /// A closed one. Settings beyond their bounds count as the bound.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings: settings.clamped(), phase: Phase::HEALTHY, openings: 0, epoch: 0 }
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// How long no call is admitted; zero if one is, or as soon as the running trial ends.
    #[must_use]
    pub fn retry_in(&self, now: Instant) -> Duration {
        match self.phase {
            Phase::Closed { .. } | Phase::HalfOpen { .. } => Duration::ZERO,
            Phase::Open { until } => until.saturating_duration_since(now),
        }
    }

    /// When the next trial is due; `None` if the breaker is closed, or a trial is running.
    #[must_use]
    pub fn next_trial(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closed { .. } | Phase::HalfOpen { trial: true, .. } => None,
            Phase::Open { until } => Some(until),
            Phase::HalfOpen { trial: false, next, .. } => Some(next),
        }
    }

    /// The epoch, if the breaker is closed and there is no failure to forget: then neither admitting a call
    /// nor settling one that did not fail changes anything.
    #[must_use]
    pub fn healthy_epoch(&self) -> Option<u64> {
        match &self.phase {
            Phase::Closed { failures } if failures.is_empty() => Some(self.epoch),
            _ => None,
        }
    }

    /// Admits a call. A half-open breaker admits one as the trial, without waiting until it is due: the call
    /// is there already.
    ///
    /// # Errors
    /// How long to wait; zero while a trial is running.
    pub fn admit(&mut self, now: Instant) -> Result<Permit, Duration> {
        match &mut self.phase {
            Phase::Closed { .. } => return Ok(Permit::for_healthy_epoch(self.epoch)),
            Phase::Open { until } if now < *until => return Err(until.saturating_duration_since(now)),
            Phase::Open { .. } => self.enter(Phase::HalfOpen { successes: 0, trial: true, next: now }),
            Phase::HalfOpen { trial: true, .. } => return Err(Duration::ZERO),
            Phase::HalfOpen { trial, .. } => *trial = true,
        }
        Ok(Permit { epoch: self.epoch, trial: true })
    }

    /// Admits a trial if one is due.
    pub fn admit_trial(&mut self, now: Instant) -> Option<Permit> {
        let is_due = self.next_trial().is_some_and(|due| due <= now);
        if is_due { self.admit(now).ok() } else { None }
    }

    /// Records the outcome of an admitted call.
    pub fn settle(&mut self, permit: Permit, verdict: Verdict, now: Instant) {
        if permit.epoch != self.epoch {
            return;
        }
        let settings = self.settings;
        match (&mut self.phase, verdict) {
            (Phase::Closed { failures }, Verdict::Healthy) => failures.clear(),
            (Phase::Closed { failures }, Verdict::Failed) => {
                failures.retain(|&at| now.saturating_duration_since(at) <= settings.window);
                failures.push_back(now);
                if failures.len() >= settings.failures as usize {
                    self.open(now);
                }
            }
            (Phase::HalfOpen { .. }, Verdict::Failed) => self.open(now),
            (Phase::HalfOpen { successes, trial, next }, verdict) => {
                *trial = false;
                *next = now + settings.trial_every;
                *successes += u32::from(verdict == Verdict::Healthy);
                if *successes >= settings.successes {
                    self.reset();
                }
            }
            (Phase::Closed { .. }, Verdict::Inconclusive) | (Phase::Open { .. }, _) => {}
        }
    }

    /// Closes it and forgets all failures.
    pub fn reset(&mut self) {
        self.openings = 0;
        self.enter(Phase::HEALTHY);
    }

    fn open(&mut self, now: Instant) {
        // 2^31 times any time is more than the longest.
        let doublings = self.openings.min(31);
        let time = self.settings.open_for.saturating_mul(1 << doublings).min(self.settings.open_max);
        self.openings = self.openings.saturating_add(1);
        self.enter(Phase::Open { until: now + time });
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.epoch = self.epoch.wrapping_add(1);
    }
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod recovery_tests;
#[cfg(test)]
#[path = "circuit_breaker_tests.rs"]
mod tests;
