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
//! *Desired* (up or down) is independent of the state. A process exists only in `Starting`, `Handshaking`, `Ready`,
//! `Unhealthy` and `Draining`, and every way out of `Draining` waits until nothing of the process is left: so
//! one instance never has two processes. Deaths are counted when they happen; an exit that was asked for is
//! not a death. An instance that fails too many checks counts as dead and drains first, so that calls which
//! still get answers may finish. One that ignores the deadline of a call, if that is configured, counts as
//! dead and is killed immediately: it does not follow requests, so asking it to end would be useless.
//!
//! The machine does no IO, reads no clock, generates no random number and cannot panic; an event that does
//! not apply to a state changes nothing. Reports about earlier generations are ignored. It requests a tick
//! through [`Machine::wake_at`], so there is no timer to cancel.

use std::time::Duration;

use talon_plugin_config::spec::LifecycleSettings;
use talon_sanitize::{Sanitized, inert};

use super::backoff;
use super::event::{CallFailure, CheckResult, Input, MachineAction, MachineEvent, ProcessReport};
use super::health_checks::{CheckVerdict, HealthChecks};
use super::reason::{Reason, format_duration, truncate};
use super::restart_counter::RestartCounter;
use super::{Desired, MachineTime, State};

/// The interval at which a kill is repeated while something is still running. SIGKILL works the first time,
/// except for processes that were just being forked.
const KILL_RETRY: Duration = Duration::from_secs(1);

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
    reason: Option<Reason>,
}

/// The state and its own data.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Discovered,
    Starting,
    Handshaking,
    /// Ready, or Unhealthy when checks failed.
    Up(HealthChecks),
    Draining {
        step: DrainStep,
        /// When the step times out.
        until: MachineTime,
        grace: Duration,
        next: AfterDrain,
    },
    Stopped,
    Backoff {
        until: MachineTime,
    },
    Failed,
}

/// The steps of draining, each bounded in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DrainStep {
    /// Calls in flight may finish.
    Calls,
    /// It was asked to shut down; SIGTERM follows.
    ShutdownRequested,
    /// It got SIGTERM; SIGKILL follows.
    Terminated,
    /// It exited or got SIGKILL; its remaining processes are ending.
    Clearing,
}

/// What follows once nothing of the process is left.
#[derive(Debug, Clone, PartialEq)]
enum AfterDrain {
    Stop,
    Launch,
    Backoff(Duration),
    Fail,
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
            Phase::Starting | Phase::Handshaking | Phase::Up(_) | Phase::Backoff { .. } => true,
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

    fn report(&mut self, report: ProcessReport, input: Input) -> Vec<MachineAction> {
        match &self.phase {
            Phase::Starting | Phase::Handshaking => self.report_launching(report, input),
            Phase::Up(_) => self.report_up(report, input),
            Phase::Draining { step, .. } => self.report_draining(*step, report, input),
            Phase::Discovered | Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => Vec::new(),
        }
    }

    fn report_launching(&mut self, report: ProcessReport, input: Input) -> Vec<MachineAction> {
        match report {
            ProcessReport::ProcessStarted => {
                self.phase = Phase::Handshaking;
                Vec::new()
            }
            ProcessReport::Launched => {
                self.reason = None;
                self.phase = Phase::Up(HealthChecks::new(&self.policy, input.now));
                Vec::new()
            }
            ProcessReport::LaunchFailed { cause, refused } => {
                let next = self.record_death(cause, refused, input);
                self.enter(next, input.now)
            }
            ProcessReport::Gone => {
                let next = self.record_death("it vanished while it started".into(), false, input);
                self.enter(next, input.now)
            }
            ProcessReport::Exited { how } => {
                let next = self.record_death(how, false, input);
                self.cancel_launch(next, input.now)
            }
            ProcessReport::CallsDone
            | ProcessReport::ExitAnswered { .. }
            | ProcessReport::Checked(_)
            | ProcessReport::IgnoredDeadline { .. }
            | ProcessReport::Flooded { .. } => Vec::new(),
        }
    }

    fn report_up(&mut self, report: ProcessReport, input: Input) -> Vec<MachineAction> {
        match report {
            ProcessReport::Exited { how } => {
                let next = self.record_death(how.clone(), false, input);
                let restarting = matches!(next, AfterDrain::Backoff(_));
                self.await_cleanup(next, input.now);
                vec![MachineAction::FailCalls(CallFailure::Died { how, restarting }), MachineAction::Kill]
            }
            ProcessReport::Gone => {
                let how = Sanitized::literal("it vanished");
                let next = self.record_death(how.clone(), false, input);
                let restarting = matches!(next, AfterDrain::Backoff(_));
                let mut actions = vec![MachineAction::FailCalls(CallFailure::Died { how, restarting })];
                actions.extend(self.enter(next, input.now));
                actions
            }
            ProcessReport::Checked(verdict) => self.on_check(verdict, input),
            ProcessReport::IgnoredDeadline { which, patience } => {
                let cause = inert!("ignored the deadline of {} for {}", which, format_duration(patience));
                let next = self.record_death(cause, false, input);
                let restarting = matches!(next, AfterDrain::Backoff(_));
                self.await_cleanup(next, input.now);
                // Other callers must not learn whose call it was.
                let how = Sanitized::literal("killed, because it ignored the deadline of another call");
                vec![MachineAction::FailCalls(CallFailure::Died { how, restarting }), MachineAction::Kill]
            }
            ProcessReport::Flooded { how } => {
                let next = self.record_death(inert!("flooded its connection: {}", how), false, input);
                let restarting = matches!(next, AfterDrain::Backoff(_));
                self.await_cleanup(next, input.now);
                let how = Sanitized::literal("killed, because it flooded its connection");
                vec![MachineAction::FailCalls(CallFailure::Died { how, restarting }), MachineAction::Kill]
            }
            ProcessReport::ProcessStarted
            | ProcessReport::Launched
            | ProcessReport::LaunchFailed { .. }
            | ProcessReport::CallsDone
            | ProcessReport::ExitAnswered { .. } => Vec::new(),
        }
    }

    fn report_draining(
        &mut self,
        step: DrainStep,
        report: ProcessReport,
        input: Input,
    ) -> Vec<MachineAction> {
        let died =
            |how: Sanitized, restarting| MachineAction::FailCalls(CallFailure::Died { how, restarting });
        match (step, report) {
            (
                DrainStep::Calls | DrainStep::ShutdownRequested | DrainStep::Terminated,
                ProcessReport::Exited { how },
            ) => {
                let mut actions = vec![died(how, self.will_be_ready())];
                actions.extend(self.drain_step(DrainStep::Clearing, input.now));
                actions
            }
            (step, ProcessReport::Gone | ProcessReport::LaunchFailed { .. }) => {
                let Phase::Draining { next, .. } = &self.phase else { return Vec::new() };
                let next = next.clone();
                let mut actions = Vec::new();
                if step != DrainStep::Clearing {
                    actions.push(died("it vanished".into(), self.will_be_ready()));
                }
                actions.extend(self.enter(next, input.now));
                actions
            }
            (DrainStep::Calls, ProcessReport::CallsDone) => {
                self.drain_step(DrainStep::ShutdownRequested, input.now)
            }
            (DrainStep::ShutdownRequested, ProcessReport::ExitAnswered { accepted: false }) => {
                self.drain_step(DrainStep::Terminated, input.now)
            }
            // A cancelled launch that succeeded nevertheless.
            (DrainStep::Clearing, ProcessReport::Launched) => vec![MachineAction::Kill],
            _ => Vec::new(),
        }
    }

    fn on_check(&mut self, verdict: CheckResult, input: Input) -> Vec<MachineAction> {
        let Phase::Up(checks) = &mut self.phase else { return Vec::new() };
        let cause = match checks.judge(verdict, &self.policy, input.now) {
            CheckVerdict::Healthy => {
                self.reason = None;
                return Vec::new();
            }
            CheckVerdict::Excused => return Vec::new(),
            CheckVerdict::Failed { cause } => cause,
        };
        let (failures, threshold) = (checks.failures(), self.policy.health_failure_threshold.max(1));
        if failures < threshold {
            self.reason = Some(Reason::FailedChecks { failures, threshold, cause: truncate(cause) });
            return Vec::new();
        }
        let cause = inert!("failed {} health checks in a row; the last: {}", failures, cause);
        let next = self.record_death(cause, false, input);
        self.drain(self.policy.grace_period, next, input.now)
    }

    /// Counts a death, stores its cause as the reason, and decides what follows.
    fn record_death(&mut self, cause: Sanitized, refused: bool, input: Input) -> AfterDrain {
        let cause = truncate(cause);
        self.total_deaths += 1;
        if refused {
            self.reason = Some(Reason::Refused { cause });
            return AfterDrain::Fail;
        }
        let deaths = self.restarts.record(input.now);
        let policy = &self.policy;
        let (reason, next) = if !policy.restart_on_failure {
            (Reason::RestartsOff { cause }, AfterDrain::Fail)
        } else if self.restarts.is_full() {
            (Reason::DiedTooOften { deaths, window: policy.restart_window, cause }, AfterDrain::Fail)
        } else {
            // The first death of a process that has served is restarted at once, because callers wait; the
            // launcher limits concurrent starts. A process that dies again, or did not become ready, has to
            // wait.
            let wait = if deaths == 1 && matches!(self.phase, Phase::Up(_)) {
                Duration::ZERO
            } else {
                backoff::wait(policy.backoff_initial, policy.backoff_max, deaths, input.jitter)
            };
            (Reason::Died { deaths, allowed: policy.max_restarts, cause }, AfterDrain::Backoff(wait))
        };
        self.reason = Some(reason);
        next
    }

    fn cancel_launch(&mut self, next: AfterDrain, now: MachineTime) -> Vec<MachineAction> {
        self.await_cleanup(next, now);
        vec![MachineAction::CancelLaunch]
    }

    /// Waits until the remaining processes are gone.
    fn await_cleanup(&mut self, next: AfterDrain, now: MachineTime) {
        let until = now.saturating_add(KILL_RETRY);
        self.phase = Phase::Draining { step: DrainStep::Clearing, until, grace: Duration::ZERO, next };
    }

    fn drain(&mut self, grace: Duration, next: AfterDrain, now: MachineTime) -> Vec<MachineAction> {
        let until = now.saturating_add(grace);
        self.phase = Phase::Draining { step: DrainStep::Calls, until, grace, next };
        vec![MachineAction::AwaitCalls]
    }

    /// Enters a later step of draining. The grace period applies twice: once to the calls in flight, once to
    /// the process, which gets half of it to shut down and half to end on SIGTERM.
    fn drain_step(&mut self, to: DrainStep, now: MachineTime) -> Vec<MachineAction> {
        let Phase::Draining { step, until, grace, .. } = &mut self.phase else { return Vec::new() };
        let (lasts, action) = match to {
            DrainStep::Calls => (*grace, MachineAction::AwaitCalls),
            DrainStep::ShutdownRequested => (*grace / 2, MachineAction::AskToExit),
            DrainStep::Terminated => (*grace / 2, MachineAction::Terminate),
            DrainStep::Clearing => (KILL_RETRY, MachineAction::Kill),
        };
        *step = to;
        *until = now.saturating_add(lasts);
        vec![action]
    }

    /// Enters a state without a process, or starts a new one. Called only when nothing of the last process is left.
    fn enter(&mut self, next: AfterDrain, now: MachineTime) -> Vec<MachineAction> {
        match next {
            AfterDrain::Stop => self.phase = Phase::Stopped,
            AfterDrain::Fail => self.phase = Phase::Failed,
            AfterDrain::Backoff(wait) => self.phase = Phase::Backoff { until: now.saturating_add(wait) },
            AfterDrain::Launch => {
                self.phase = Phase::Starting;
                self.generation = self.generation.wrapping_add(1);
                return vec![MachineAction::Launch { generation: self.generation }];
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
