//! The breaker's state machine, without a service around it.
//!
//! ```text
//!            `failures` faults in a row within `window`
//!   Closed ───────────────────────────────────────────► Open ◄─────────┐
//!     ▲  ▲                                               │ open_for    │ the probe failed
//!     │  └── reset                                       ▼             │
//!     └──────────────── the probe was answered ────── HalfOpen ────────┘
//! ```
//!
//! Each change of state starts a new epoch. The verdict on a call that was admitted in an earlier epoch is ignored, so
//! that late results neither reopen nor close the breaker.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::settings::BreakerSettings;
use super::state::BreakerState;

/// More faults in a row than this are not recorded; a larger `failures` counts as this.
const MAX_FAILURES: u32 = 1000;

/// The longest time a breaker stays open; a longer `open_for` counts as this.
const MAX_OPEN: Duration = Duration::from_secs(24 * 60 * 60);

/// What the outcome of a call says about the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The plugin answered.
    Alive,
    /// The plugin failed the call.
    Fault,
    /// The plugin was not called, or the caller gave up.
    Unknown,
}

/// The permit of one admitted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallPermit {
    epoch: u64,
    probe: bool,
}

impl CallPermit {
    /// The permit that [`Machine::admit`] gives while the machine is healthy in this epoch.
    pub(super) fn for_healthy_epoch(epoch: u64) -> Self {
        Self { epoch, probe: false }
    }
}

#[derive(Debug)]
enum Phase {
    /// The faults in a row, oldest first, at most `failures` of them.
    Closed {
        faults: VecDeque<Instant>,
    },
    Open {
        until: Instant,
    },
    HalfOpen {
        probing: bool,
    },
}

#[derive(Debug)]
pub(super) struct Machine {
    settings: BreakerSettings,
    phase: Phase,
    epoch: u64,
}

impl Machine {
    pub(super) fn new(settings: BreakerSettings) -> Self {
        let failures = settings.failures.clamp(1, MAX_FAILURES);
        let settings = BreakerSettings { failures, open_for: settings.open_for.min(MAX_OPEN), ..settings };
        Self { settings, phase: Phase::Closed { faults: VecDeque::new() }, epoch: 0 }
    }

    /// Admits a call, or returns how long to wait; zero while a probe is running.
    pub(super) fn admit(&mut self, now: Instant) -> Result<CallPermit, Duration> {
        if let Phase::Open { until } = self.phase
            && now >= until
        {
            self.enter(Phase::HalfOpen { probing: false });
        }
        match &mut self.phase {
            Phase::Closed { .. } => Ok(CallPermit::for_healthy_epoch(self.epoch)),
            Phase::Open { until } => Err(until.saturating_duration_since(now)),
            Phase::HalfOpen { probing: true } => Err(Duration::ZERO),
            Phase::HalfOpen { probing } => {
                *probing = true;
                Ok(CallPermit { epoch: self.epoch, probe: true })
            }
        }
    }

    /// Records the outcome of an admitted call.
    pub(super) fn settle(&mut self, call: CallPermit, verdict: Verdict, now: Instant) {
        if call.epoch != self.epoch {
            return;
        }
        match (&mut self.phase, verdict) {
            (Phase::Closed { faults }, Verdict::Alive) => faults.clear(),
            (Phase::Closed { faults }, Verdict::Fault) => {
                let window = self.settings.window;
                faults.retain(|&at| now.saturating_duration_since(at) <= window);
                faults.push_back(now);
                if faults.len() >= self.settings.failures as usize {
                    self.open(now);
                }
            }
            (Phase::HalfOpen { .. }, Verdict::Alive) if call.probe => {
                self.enter(Phase::Closed { faults: VecDeque::new() });
            }
            (Phase::HalfOpen { .. }, Verdict::Fault) if call.probe => self.open(now),
            // The probe had no result: the next call is the probe.
            (Phase::HalfOpen { probing }, Verdict::Unknown) if call.probe => *probing = false,
            _ => {}
        }
    }

    /// Forgets all faults.
    pub(super) fn reset(&mut self) {
        self.enter(Phase::Closed { faults: VecDeque::new() });
    }

    /// The epoch, if the machine is closed and there is no fault to forget: then neither admitting a call nor settling
    /// one that did not fail changes anything.
    pub(super) fn healthy_epoch(&self) -> Option<u64> {
        match &self.phase {
            Phase::Closed { faults } if faults.is_empty() => Some(self.epoch),
            _ => None,
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    fn open(&mut self, now: Instant) {
        self.enter(Phase::Open { until: now + self.settings.open_for });
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.epoch += 1;
    }
}

#[cfg(test)]
mod tests;
