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

use talon_sanitize::{Sanitized, inert};

use super::backoff;
use super::checks::{Checks, Judged};
use super::event::{Action, CallsEnd, Event, Input, Report, Verdict};
use super::reason::{Reason, bounded, span};
use super::tally::Tally;
use super::{Desired, Moment, State};
use crate::spec::LifecycleSettings;

/// The interval at which a kill is repeated while something is still running. SIGKILL works the first time,
/// except for processes that were just being forked.
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// The lifecycle of one instance.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    policy: LifecycleSettings,
    desired: Desired,
    phase: Phase,
    /// Counts the launches; the current process belongs to this generation.
    generation: u64,
    tally: Tally,
    /// Deaths and refused starts since the machine was created.
    died: u64,
    reason: Option<Reason>,
}

/// The state and its own data.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Discovered,
    Starting,
    Handshaking,
    /// Ready, or Unhealthy when checks failed.
    Up(Checks),
    Draining {
        step: Step,
        /// When the step times out.
        until: Moment,
        grace: Duration,
        next: Next,
    },
    Stopped,
    Backoff {
        until: Moment,
    },
    Failed,
}

/// The steps of draining, each bounded in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Calls in flight may finish.
    Calls,
    /// It was asked to shut down; SIGTERM follows.
    Asked,
    /// It got SIGTERM; SIGKILL follows.
    Terminated,
    /// It exited or got SIGKILL; its remaining processes are ending.
    Clearing,
}

/// What follows once nothing of the process is left.
#[derive(Debug, Clone, PartialEq)]
enum Next {
    Stop,
    Launch,
    Backoff(Duration),
    Fail,
}

impl Machine {
    /// The machine of an instance that was not started yet.
    pub(crate) fn new(policy: LifecycleSettings) -> Self {
        let tally = Tally::new(policy.restart_window, policy.max_restarts);
        Self {
            policy,
            desired: Desired::Down,
            phase: Phase::Discovered,
            generation: 0,
            tally,
            died: 0,
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
    pub(crate) fn deaths(&self, now: Moment) -> u32 {
        self.tally.count(now)
    }

    /// Deaths and refused starts since the machine was created.
    pub(crate) fn died(&self) -> u64 {
        self.died
    }

    /// Whether it is ready, or becomes ready without an operator: a call may wait for it.
    pub(crate) fn is_coming(&self) -> bool {
        match &self.phase {
            Phase::Starting | Phase::Handshaking | Phase::Up(_) | Phase::Backoff { .. } => true,
            Phase::Draining { next, .. } => matches!(next, Next::Launch | Next::Backoff(_)),
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
    pub(crate) fn wake_at(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Up(checks) => checks.due(),
            Phase::Draining { until, .. } | Phase::Backoff { until } => Some(*until),
            _ => None,
        }
    }

    /// Processes one event and returns the actions. Total: every event is allowed in every state.
    #[must_use]
    pub(crate) fn step(&mut self, event: Event, input: Input) -> Vec<Action> {
        match event {
            Event::Start => self.start(input.now),
            Event::Stop { grace } => self.stop(grace, input.now),
            Event::Restart => self.restart(input.now),
            Event::Report { generation, report } if generation == self.generation => {
                self.report(report, input)
            }
            Event::Report { .. } => Vec::new(),
            Event::Tick if self.wake_at().is_some_and(|due| due <= input.now) => self.tick(input.now),
            Event::Tick => Vec::new(),
        }
    }

    fn start(&mut self, now: Moment) -> Vec<Action> {
        self.desired = Desired::Up;
        match &mut self.phase {
            Phase::Starting | Phase::Handshaking | Phase::Up(_) => Vec::new(),
            Phase::Draining { next, .. } => {
                *next = Next::Launch;
                self.reason = Some(Reason::PlannedRestart);
                self.tally.clear();
                Vec::new()
            }
            Phase::Discovered | Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => {
                self.reason = None;
                self.tally.clear();
                self.settle(Next::Launch, now)
            }
        }
    }

    fn stop(&mut self, shorter: Option<Duration>, now: Moment) -> Vec<Action> {
        self.desired = Desired::Down;
        self.reason = Some(Reason::StoppedByOperator);
        let grace = shorter.map_or(self.policy.grace_period, |shorter| shorter.min(self.policy.grace_period));
        match &mut self.phase {
            Phase::Starting | Phase::Handshaking => self.cancel_launch(Next::Stop, now),
            Phase::Up(_) => self.drain(grace, Next::Stop, now),
            Phase::Draining { until, grace: granted, next, .. } => {
                *next = Next::Stop;
                *granted = grace.min(*granted);
                *until = now.saturating_add(*granted).min(*until);
                Vec::new()
            }
            Phase::Discovered | Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => {
                self.settle(Next::Stop, now)
            }
        }
    }

    fn restart(&mut self, now: Moment) -> Vec<Action> {
        match &self.phase {
            Phase::Starting | Phase::Handshaking => {
                self.desired = Desired::Up;
                self.reason = Some(Reason::PlannedRestart);
                self.cancel_launch(Next::Launch, now)
            }
            Phase::Up(_) => {
                self.desired = Desired::Up;
                self.reason = Some(Reason::PlannedRestart);
                self.drain(self.policy.grace_period, Next::Launch, now)
            }
            _ => self.start(now),
        }
    }

    fn tick(&mut self, now: Moment) -> Vec<Action> {
        match &mut self.phase {
            Phase::Up(checks) => {
                checks.begin();
                vec![Action::CheckHealth]
            }
            Phase::Backoff { .. } => self.settle(Next::Launch, now),
            Phase::Draining { step: Step::Calls, .. } => {
                let mut actions = vec![Action::FailCalls(CallsEnd::Stopped)];
                actions.extend(self.drain_step(Step::Asked, now));
                actions
            }
            Phase::Draining { step: Step::Asked, .. } => self.drain_step(Step::Terminated, now),
            Phase::Draining { step: Step::Terminated | Step::Clearing, .. } => {
                self.drain_step(Step::Clearing, now)
            }
            Phase::Discovered | Phase::Starting | Phase::Handshaking | Phase::Stopped | Phase::Failed => {
                Vec::new()
            }
        }
    }

    fn report(&mut self, report: Report, input: Input) -> Vec<Action> {
        match &self.phase {
            Phase::Starting | Phase::Handshaking => self.report_launching(report, input),
            Phase::Up(_) => self.report_up(report, input),
            Phase::Draining { step, .. } => self.report_draining(*step, report, input),
            Phase::Discovered | Phase::Stopped | Phase::Backoff { .. } | Phase::Failed => Vec::new(),
        }
    }

    fn report_launching(&mut self, report: Report, input: Input) -> Vec<Action> {
        match report {
            Report::ProcessStarted => {
                self.phase = Phase::Handshaking;
                Vec::new()
            }
            Report::Launched => {
                self.reason = None;
                self.phase = Phase::Up(Checks::new(&self.policy, input.now));
                Vec::new()
            }
            Report::LaunchFailed { cause, refused } => {
                let next = self.death(cause, refused, input);
                self.settle(next, input.now)
            }
            Report::Gone => {
                let next = self.death("it vanished while it started".into(), false, input);
                self.settle(next, input.now)
            }
            Report::Exited { how } => {
                let next = self.death(how, false, input);
                self.cancel_launch(next, input.now)
            }
            Report::CallsDone
            | Report::ExitAnswered { .. }
            | Report::Checked(_)
            | Report::IgnoredDeadline { .. } => Vec::new(),
        }
    }

    fn report_up(&mut self, report: Report, input: Input) -> Vec<Action> {
        match report {
            Report::Exited { how } => {
                let next = self.death(how.clone(), false, input);
                let restarting = matches!(next, Next::Backoff(_));
                self.clear(next, input.now);
                vec![Action::FailCalls(CallsEnd::Died { how, restarting }), Action::Kill]
            }
            Report::Gone => {
                let how = Sanitized::ours("it vanished");
                let next = self.death(how.clone(), false, input);
                let restarting = matches!(next, Next::Backoff(_));
                let mut actions = vec![Action::FailCalls(CallsEnd::Died { how, restarting })];
                actions.extend(self.settle(next, input.now));
                actions
            }
            Report::Checked(verdict) => self.checked(verdict, input),
            Report::IgnoredDeadline { which, patience } => {
                let cause = inert!("ignored the deadline of {} for {}", which, span(patience));
                let next = self.death(cause, false, input);
                let restarting = matches!(next, Next::Backoff(_));
                self.clear(next, input.now);
                // Other callers must not learn whose call it was.
                let how = Sanitized::ours("killed, because it ignored the deadline of another call");
                vec![Action::FailCalls(CallsEnd::Died { how, restarting }), Action::Kill]
            }
            Report::ProcessStarted
            | Report::Launched
            | Report::LaunchFailed { .. }
            | Report::CallsDone
            | Report::ExitAnswered { .. } => Vec::new(),
        }
    }

    fn report_draining(&mut self, step: Step, report: Report, input: Input) -> Vec<Action> {
        let died = |how: Sanitized, restarting| Action::FailCalls(CallsEnd::Died { how, restarting });
        match (step, report) {
            (Step::Calls | Step::Asked | Step::Terminated, Report::Exited { how }) => {
                let mut actions = vec![died(how, self.is_coming())];
                actions.extend(self.drain_step(Step::Clearing, input.now));
                actions
            }
            (step, Report::Gone | Report::LaunchFailed { .. }) => {
                let Phase::Draining { next, .. } = &self.phase else { return Vec::new() };
                let next = next.clone();
                let mut actions = Vec::new();
                if step != Step::Clearing {
                    actions.push(died("it vanished".into(), self.is_coming()));
                }
                actions.extend(self.settle(next, input.now));
                actions
            }
            (Step::Calls, Report::CallsDone) => self.drain_step(Step::Asked, input.now),
            (Step::Asked, Report::ExitAnswered { accepted: false }) => {
                self.drain_step(Step::Terminated, input.now)
            }
            // A cancelled launch that succeeded nevertheless.
            (Step::Clearing, Report::Launched) => vec![Action::Kill],
            _ => Vec::new(),
        }
    }

    fn checked(&mut self, verdict: Verdict, input: Input) -> Vec<Action> {
        let Phase::Up(checks) = &mut self.phase else { return Vec::new() };
        let cause = match checks.judge(verdict, &self.policy, input.now) {
            Judged::Well => {
                self.reason = None;
                return Vec::new();
            }
            Judged::Excused => return Vec::new(),
            Judged::Failed { cause } => cause,
        };
        let (failures, threshold) = (checks.failures(), self.policy.health_failure_threshold.max(1));
        if failures < threshold {
            self.reason = Some(Reason::FailedChecks { failures, threshold, cause: bounded(cause) });
            return Vec::new();
        }
        let cause = inert!("failed {} health checks in a row; the last: {}", failures, cause);
        let next = self.death(cause, false, input);
        self.drain(self.policy.grace_period, next, input.now)
    }

    /// Counts a death, stores its cause as the reason, and decides what follows.
    fn death(&mut self, cause: Sanitized, refused: bool, input: Input) -> Next {
        let cause = bounded(cause);
        self.died += 1;
        if refused {
            self.reason = Some(Reason::Refused { cause });
            return Next::Fail;
        }
        let deaths = self.tally.record(input.now);
        let policy = &self.policy;
        let (reason, next) = if !policy.restart_on_failure {
            (Reason::RestartsOff { cause }, Next::Fail)
        } else if self.tally.is_full() {
            (Reason::DiedTooOften { deaths, window: policy.restart_window, cause }, Next::Fail)
        } else {
            // The first death of a process that has served is restarted at once, because callers wait; the
            // launcher limits concurrent starts. A process that dies again, or did not become ready, has to
            // wait.
            let wait = if deaths == 1 && matches!(self.phase, Phase::Up(_)) {
                Duration::ZERO
            } else {
                backoff::wait(policy.backoff_initial, policy.backoff_max, deaths, input.jitter)
            };
            (Reason::Died { deaths, allowed: policy.max_restarts, cause }, Next::Backoff(wait))
        };
        self.reason = Some(reason);
        next
    }

    fn cancel_launch(&mut self, next: Next, now: Moment) -> Vec<Action> {
        self.clear(next, now);
        vec![Action::CancelLaunch]
    }

    /// Waits until the remaining processes are gone.
    fn clear(&mut self, next: Next, now: Moment) {
        let until = now.saturating_add(KILL_AGAIN);
        self.phase = Phase::Draining { step: Step::Clearing, until, grace: Duration::ZERO, next };
    }

    fn drain(&mut self, grace: Duration, next: Next, now: Moment) -> Vec<Action> {
        let until = now.saturating_add(grace);
        self.phase = Phase::Draining { step: Step::Calls, until, grace, next };
        vec![Action::AwaitCalls]
    }

    /// Enters a later step of draining. The grace period applies twice: once to the calls in flight, once to
    /// the process, which gets half of it to shut down and half to end on SIGTERM.
    fn drain_step(&mut self, to: Step, now: Moment) -> Vec<Action> {
        let Phase::Draining { step, until, grace, .. } = &mut self.phase else { return Vec::new() };
        let (lasts, action) = match to {
            Step::Calls => (*grace, Action::AwaitCalls),
            Step::Asked => (*grace / 2, Action::AskToExit),
            Step::Terminated => (*grace / 2, Action::Terminate),
            Step::Clearing => (KILL_AGAIN, Action::Kill),
        };
        *step = to;
        *until = now.saturating_add(lasts);
        vec![action]
    }

    /// Enters a state without a process, or starts a new one. Called only when nothing of the last process is left.
    fn settle(&mut self, next: Next, now: Moment) -> Vec<Action> {
        match next {
            Next::Stop => self.phase = Phase::Stopped,
            Next::Fail => self.phase = Phase::Failed,
            Next::Backoff(wait) => self.phase = Phase::Backoff { until: now.saturating_add(wait) },
            Next::Launch => {
                self.phase = Phase::Starting;
                self.generation = self.generation.wrapping_add(1);
                return vec![Action::Launch { generation: self.generation }];
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
