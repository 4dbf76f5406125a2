//! What a report about the process changes.

use std::time::Duration;

use talon_sanitize::{Sanitized, sanitized};

use super::Machine;
use super::phase::{AfterDrain, DrainStep, Phase};
use crate::lifecycle::backoff;
use crate::lifecycle::event::{CallFailure, CheckResult, FailureKind, Input, MachineAction, ProcessReport};
use crate::lifecycle::health_checks::{CheckVerdict, HealthChecks};
use crate::lifecycle::reason::{Reason, format_duration, truncate};

/// The wait after the first start that failed by an outage, and the longest one, if the plugin's own are
/// shorter. It grows to minutes, because outages take minutes and each try starts a process.
const OUTAGE_BACKOFF_INITIAL: Duration = Duration::from_secs(1);
const OUTAGE_BACKOFF_MAX: Duration = Duration::from_secs(120);

impl Machine {
    pub(super) fn report(&mut self, report: ProcessReport, input: Input) -> Vec<MachineAction> {
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
                self.outages = 0;
                self.phase = Phase::Up(HealthChecks::new(&self.policy, input.now));
                Vec::new()
            }
            ProcessReport::LaunchFailed { cause, kind } => {
                let next = match kind {
                    FailureKind::Outage if self.policy.restart_on_failure && self.policy.max_restarts > 0 => {
                        self.record_outage(cause, input)
                    }
                    FailureKind::Permanent => self.record_refusal(cause),
                    FailureKind::Outage | FailureKind::Passing | FailureKind::FrameFlood => {
                        self.record_death(cause, input)
                    }
                };
                self.enter(next, input.now)
            }
            ProcessReport::Gone => {
                let next = self.record_death("it vanished while it started".into(), input);
                self.enter(next, input.now)
            }
            ProcessReport::Exited { how } => {
                let next = self.record_death(how, input);
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
                let next = self.record_death(how.clone(), input);
                let restarting = matches!(next, AfterDrain::Backoff(_));
                self.await_cleanup(next, input.now);
                vec![MachineAction::FailCalls(CallFailure::Died { how, restarting }), MachineAction::Kill]
            }
            ProcessReport::Gone => {
                let how = Sanitized::literal("it vanished");
                let next = self.record_death(how.clone(), input);
                let restarting = matches!(next, AfterDrain::Backoff(_));
                let mut actions = vec![MachineAction::FailCalls(CallFailure::Died { how, restarting })];
                actions.extend(self.enter(next, input.now));
                actions
            }
            ProcessReport::Checked(verdict) => self.on_check(verdict, input),
            ProcessReport::IgnoredDeadline { which, patience } => {
                let cause = sanitized!("ignored the deadline of {} for {}", which, format_duration(patience));
                let next = self.record_death(cause, input);
                let restarting = matches!(next, AfterDrain::Backoff(_));
                self.await_cleanup(next, input.now);
                // Other callers must not learn whose call it was.
                let how = Sanitized::literal("killed, because it ignored the deadline of another call");
                vec![MachineAction::FailCalls(CallFailure::Died { how, restarting }), MachineAction::Kill]
            }
            ProcessReport::Flooded { how } => {
                let next = self.record_death(sanitized!("flooded its connection: {}", how), input);
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
        let cause = sanitized!("failed {} health checks in a row; the last: {}", failures, cause);
        let next = self.record_death(cause, input);
        self.drain(self.policy.grace_period, next, input.now)
    }

    /// A start that would fail again in the same way.
    fn record_refusal(&mut self, cause: Sanitized) -> AfterDrain {
        self.total_deaths += 1;
        self.reason = Some(Reason::Refused { cause: truncate(cause) });
        AfterDrain::Fail
    }

    /// A start that failed because something else is away. No number of them makes the plugin fail: it is not
    /// its fault, and an operator could not mend it by another start.
    fn record_outage(&mut self, cause: Sanitized, input: Input) -> AfterDrain {
        self.total_deaths += 1;
        self.outages = self.outages.saturating_add(1);
        let initial = self.policy.backoff_initial.max(OUTAGE_BACKOFF_INITIAL);
        let max = self.policy.backoff_max.max(OUTAGE_BACKOFF_MAX);
        let wait = backoff::wait(initial, max, self.outages, input.jitter);
        self.reason = Some(Reason::Outage { cause: truncate(cause), wait });
        AfterDrain::Backoff(wait)
    }

    /// Counts a death, stores its cause as the reason, and decides what follows.
    fn record_death(&mut self, cause: Sanitized, input: Input) -> AfterDrain {
        let cause = truncate(cause);
        self.total_deaths += 1;
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
}
