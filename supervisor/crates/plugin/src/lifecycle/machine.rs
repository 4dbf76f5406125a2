//! The pure lifecycle machine of one instance: `(state, event, now) → (state, actions)`.
//!
//! ```text
//!                 start               it runs               capabilities read
//!  Discovered ─────────────► Starting ───────► Handshaking ──────────────────► Ready
//!                              ▲   │                │                           ▲ │ check failed
//!                              │   └───────┬────────┘                    healthy│ ▼
//!                              │           │                                Unhealthy
//!                              │           │ launch failed or                      │ died, too many failed checks,
//!                              │           │ called off                            │ ignored a deadline, stop, restart
//!                              │           ▼                                       ▼
//!                              │   ┌─────────────────────── Draining ───────────────────────────┐
//!                              │   │ calls finish → asked to exit → SIGTERM → SIGKILL, clearing │
//!                              │   └──────────────────────────┬─────────────────────────────────┘
//!                              │  restart                     │ nothing of it is left
//!                              ├──────────────────────────────┤
//!                              │  the wait is over            │ a death
//!                              ├────────── Backoff ◄──────────┤
//!                              │  start, restart              │ one death too many, no restarts, refused
//!                              ├────────── Failed  ◄──────────┤
//!                              │  start, restart              │ stop
//!                              └────────── Stopped ◄──────────┘
//! ```
//!
//! `stop` leads from Discovered, Backoff and Failed to Stopped immediately; only an operator leads out of
//! Failed. `start` and `stop` while it drains change only the state that follows.
//!
//! *Desired* (up or down) is independent of the state. A process exists only in `Starting`, `Handshaking`,
//! `Ready`, `Unhealthy` and `Draining`, and every way out of `Draining` waits until nothing of the process is
//! left: so one instance never has two processes. Deaths are counted when they happen; an exit that was asked
//! for is not a death. An instance that fails too many checks counts as dead and drains first, so that calls
//! which still get answers may finish. One that ignores the deadline of a call, if that is configured, counts
//! as dead and is killed immediately: it does not follow requests, so asking it to end would be useless.
//!
//! The machine does no IO, reads no clock, generates no random number and cannot panic; an event that does
//! not apply to a state changes nothing. Reports about earlier generations are ignored. It requests a tick
//! through [`Machine::wake_at`], so there is no timer to cancel.

mod phase;
mod reports;
mod transitions;

use std::time::Duration;

use talon_plugin_config::spec::LifecycleSettings;

use self::phase::{AfterDrain, DrainStep, Phase};
use super::event::{CallFailure, Input, MachineAction, MachineEvent};
use super::reason::Reason;
use super::restart_counter::RestartCounter;
use super::{Desired, MachineTime, State};

/// The lifecycle of one instance.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    policy: LifecycleSettings,
    desired: Desired,
    phase: Phase,
    /// Counts the launches; the current process belongs to this generation.
    generation: u64,
    restarts: RestartCounter,
    /// Deaths and refused starts since the machine was created.
    total_deaths: u64,
    /// Starts in a row that failed because something else is away.
    outages: u32,
    reason: Option<Reason>,
}

impl Machine {
    /// The machine of an instance that was not started yet.
    pub(crate) fn new(policy: LifecycleSettings) -> Self {
        let restarts = RestartCounter::new(policy.restart_window, policy.max_restarts);
        Self {
            policy,
            desired: Desired::Down,
            phase: Phase::Discovered,
            generation: 0,
            restarts,
            total_deaths: 0,
            outages: 0,
            reason: None,
        }
    }

    /// The observed state.
    pub(crate) fn state(&self) -> State {
        match &self.phase {
            Phase::Discovered => State::Discovered,
            Phase::Starting => State::Starting,
            Phase::Handshaking => State::Handshaking,
            Phase::Up(checks) if checks.failures() == 0 => State::Ready,
            Phase::Up(_) => State::Unhealthy,
            Phase::Draining { .. } => State::Draining,
            Phase::Stopped => State::Stopped,
            Phase::Backoff { .. } => State::Backoff,
            Phase::Failed if matches!(self.reason, Some(Reason::Refused { .. })) => State::Refused,
            Phase::Failed => State::Failed,
        }
    }

    /// The state that the operator wants.
    pub(crate) fn desired(&self) -> Desired {
        self.desired
    }

    /// The generation of the current process, or of the last one.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Why it is in this state.
    pub(crate) fn reason(&self) -> Option<&Reason> {
        self.reason.as_ref()
    }

    /// Deaths within the window that ends now.
    pub(crate) fn deaths(&self, now: MachineTime) -> u32 {
        self.restarts.count(now)
    }

    /// Deaths and refused starts since the machine was created.
    pub(crate) fn total_deaths(&self) -> u64 {
        self.total_deaths
    }

    /// Whether it is ready, or becomes ready without an operator: a call may wait for it.
    pub(crate) fn will_be_ready(&self) -> bool {
        match &self.phase {
            Phase::Starting | Phase::Handshaking | Phase::Up(_) => true,
            // An outage may last longer than any call.
            Phase::Backoff { .. } => self.outages == 0,
            Phase::Draining { next, .. } => matches!(next, AfterDrain::Launch | AfterDrain::Backoff(_)),
            Phase::Discovered | Phase::Stopped | Phase::Failed => false,
        }
    }

    /// Health checks that failed in a row and were not excused.
    pub(crate) fn failed_checks(&self) -> u32 {
        match &self.phase {
            Phase::Up(checks) => checks.failures(),
            _ => 0,
        }
    }

    /// When the machine needs an [`Event::Tick`].
    pub(crate) fn wake_at(&self) -> Option<MachineTime> {
        match &self.phase {
            Phase::Up(checks) => checks.due(),
            Phase::Draining { until, .. } | Phase::Backoff { until } => Some(*until),
            _ => None,
        }
    }

    /// Processes one event and returns the actions. Total: every event is allowed in every state.
    #[must_use]
    pub(crate) fn step(&mut self, event: MachineEvent, input: Input) -> Vec<MachineAction> {
        match event {
            MachineEvent::Start => self.start(input.now),
            MachineEvent::Stop { grace } => self.stop(grace, input.now),
            MachineEvent::Restart => self.restart(input.now),
            MachineEvent::Report { generation, report } if generation == self.generation => {
                self.report(report, input)
            }
            MachineEvent::Report { .. } => Vec::new(),
            MachineEvent::Tick if self.wake_at().is_some_and(|due| due <= input.now) => self.tick(input.now),
            MachineEvent::Tick => Vec::new(),
        }
    }

    fn start(&mut self, now: MachineTime) -> Vec<MachineAction> {
        self.desired = Desired::Up;
        match &mut self.phase {
            Phase::Starting | Phase::Handshaking | Phase::Up(_) => Vec::new(),
            Phase::Draining { next, .. } => {
                *next = AfterDrain::Launch;
                self.reason = Some(Reason::PlannedRestart);
                self.restarts.clear();
                Vec::new()
            }
            Phase::Discovered | Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => {
                self.reason = None;
                self.outages = 0;
                self.restarts.clear();
                self.enter(AfterDrain::Launch, now)
            }
        }
    }

    fn stop(&mut self, shorter: Option<Duration>, now: MachineTime) -> Vec<MachineAction> {
        self.desired = Desired::Down;
        self.reason = Some(Reason::StoppedByOperator);
        let grace = shorter.map_or(self.policy.grace_period, |shorter| shorter.min(self.policy.grace_period));
        match &mut self.phase {
            Phase::Starting | Phase::Handshaking => self.cancel_launch(AfterDrain::Stop, now),
            Phase::Up(_) => self.drain(grace, AfterDrain::Stop, now),
            Phase::Draining { until, grace: granted, next, .. } => {
                *next = AfterDrain::Stop;
                *granted = grace.min(*granted);
                *until = now.saturating_add(*granted).min(*until);
                Vec::new()
            }
            Phase::Discovered | Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => {
                self.enter(AfterDrain::Stop, now)
            }
        }
    }

    fn restart(&mut self, now: MachineTime) -> Vec<MachineAction> {
        match &self.phase {
            Phase::Starting | Phase::Handshaking => {
                self.desired = Desired::Up;
                self.reason = Some(Reason::PlannedRestart);
                self.cancel_launch(AfterDrain::Launch, now)
            }
            Phase::Up(_) => {
                self.desired = Desired::Up;
                self.reason = Some(Reason::PlannedRestart);
                self.drain(self.policy.grace_period, AfterDrain::Launch, now)
            }
            _ => self.start(now),
        }
    }

    fn tick(&mut self, now: MachineTime) -> Vec<MachineAction> {
        match &mut self.phase {
            Phase::Up(checks) => {
                checks.begin();
                vec![MachineAction::CheckHealth]
            }
            Phase::Backoff { .. } => self.enter(AfterDrain::Launch, now),
            Phase::Draining { step: DrainStep::Calls, .. } => {
                let mut actions = vec![MachineAction::FailCalls(CallFailure::Stopped)];
                actions.extend(self.drain_step(DrainStep::ShutdownRequested, now));
                actions
            }
            Phase::Draining { step: DrainStep::ShutdownRequested, .. } => {
                self.drain_step(DrainStep::Terminated, now)
            }
            Phase::Draining { step: DrainStep::Terminated | DrainStep::Clearing, .. } => {
                self.drain_step(DrainStep::Clearing, now)
            }
            Phase::Discovered | Phase::Starting | Phase::Handshaking | Phase::Stopped | Phase::Failed => {
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
