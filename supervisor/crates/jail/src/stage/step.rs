//! Defines steps, and what a failure means in each mode.

use std::io;

use nix::errno::Errno;

use super::request::Plan;
use crate::report::{Protection, Status};
use crate::spec::Mode;

/// One step of the child.
pub(super) struct Step {
    /// The name in error reports.
    pub(super) name: &'static str,
    /// The protection's name in the report; unused by steps that report nothing.
    line: &'static str,
    kind: StepKind,
    /// The function that does it.
    run: StepFn,
}

type StepFn = fn(&Plan) -> Result<Option<Status>, StepError>;

/// A step that every program needs.
pub(super) const fn base(name: &'static str, line: &'static str, run: StepFn) -> Step {
    Step { name, line, kind: StepKind::Base, run }
}

/// A step that is optional in some modes; the report uses its own name.
pub(super) const fn protection(name: &'static str, run: StepFn) -> Step {
    Step { name, line: name, kind: StepKind::Protection, run }
}

/// How the mode treats a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepKind {
    /// Part of starting any program: done in every mode, and fatal on failure in every mode.
    Base,
    /// A protection that the mode may do without.
    Protection,
}

/// Why a step failed.
#[derive(Debug)]
pub(super) struct StepError {
    /// What went wrong and what to do about it.
    pub(super) reason: String,
    /// Whether it is fatal in every mode, because it leaves the process in a state that cannot go on.
    fatal: bool,
}

impl StepError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), fatal: false }
    }

    /// The same error, fatal in every mode.
    pub(super) fn fatal(self) -> Self {
        Self { fatal: true, ..self }
    }

    /// "cannot become uid 70003: Operation not permitted (run as root, …)"
    pub(super) fn errno(what: &str, errno: i32, advice: &str) -> Self {
        let why = Errno::from_raw(errno).desc();
        let advice = if advice.is_empty() { String::new() } else { format!(" ({advice})") };
        Self::new(format!("{what}: {why}{advice}"))
    }

    pub(super) fn io(what: &str, error: &io::Error, advice: &str) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::errno(what, errno, advice),
            None if advice.is_empty() => Self::new(format!("{what}: {error}")),
            None => Self::new(format!("{what}: {error} ({advice})")),
        }
    }
}

impl Step {
    pub(super) fn execute(&self, plan: &Plan) -> Result<(), StepError> {
        plan.progress.begin(self.name);
        let mode = plan.spec.mode;
        let held = match self.kind {
            StepKind::Protection if mode == Mode::Off => {
                Some(Status::Missing("switched off by sandbox.mode: off".into()))
            }
            StepKind::Protection if mode == Mode::BestEffort => match (self.run)(plan) {
                Err(error) if !error.fatal => Some(Status::Missing(error.reason)),
                other => other?,
            },
            StepKind::Base | StepKind::Protection => (self.run)(plan)?,
        };
        if let Some(status) = held {
            plan.add_to_report(Protection::new(self.line, status));
        }
        Ok(())
    }
}
