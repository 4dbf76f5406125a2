//! What a step is, and what its failure means in each mode.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use super::request::Plan;
use crate::report::{Protection, Status};
use crate::spec::Mode;
use crate::wire::{self, Note};

/// One step of the child.
pub(super) struct Step {
    /// By which a failure is reported.
    pub(super) name: &'static str,
    /// By which the report calls what it does; not used by those that report nothing.
    line: &'static str,
    kind: Kind,
    /// Does it.
    run: Run,
}

type Run = fn(&Plan) -> Result<Option<Status>, StepError>;

/// A step that every program needs.
pub(super) const fn base(name: &'static str, line: &'static str, run: Run) -> Step {
    Step { name, line, kind: Kind::Base, run }
}

/// A step that the mode may do without; the report calls it by its own name.
pub(super) const fn protection(name: &'static str, run: Run) -> Step {
    Step { name, line: name, kind: Kind::Protection, run }
}

/// What the mode makes of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Part of starting any program: done in every mode, and its failure is final in every mode.
    Base,
    /// Something that the mode may do without.
    Protection,
}

/// Why a step failed.
#[derive(Debug)]
pub(super) struct StepError {
    /// What went wrong and what to do about it.
    pub(super) reason: String,
}

impl StepError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// "cannot become uid 70003: Operation not permitted (run as root, …)"
    pub(super) fn errno(what: &str, errno: i32, advice: &str) -> Self {
        let why = Errno::from_raw(errno).desc();
        let advice = if advice.is_empty() { String::new() } else { format!(" ({advice})") };
        Self { reason: format!("{what}: {why}{advice}") }
    }

    pub(super) fn io(what: &str, error: &io::Error, advice: &str) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::errno(what, errno, advice),
            None if advice.is_empty() => Self { reason: format!("{what}: {error}") },
            None => Self { reason: format!("{what}: {error} ({advice})") },
        }
    }
}

/// Says which step begins. A supervisor that does not hear it has gone, which the monitor notices by itself.
pub(super) fn begin(control: BorrowedFd<'_>, step: &str) {
    let _ = wire::send(control, &Note::Begins(step.to_owned()), &[]);
}

impl Step {
    pub(super) fn take(&self, plan: &Plan, control: BorrowedFd<'_>) -> Result<(), StepError> {
        begin(control, self.name);
        let mode = plan.spec.mode;
        let held = match self.kind {
            Kind::Protection if mode == Mode::Off => {
                Some(Status::Missing("switched off by sandbox.mode: off".into()))
            }
            Kind::Protection if mode == Mode::BestEffort => {
                (self.run)(plan).unwrap_or_else(|error| Some(Status::Missing(error.reason)))
            }
            Kind::Base | Kind::Protection => (self.run)(plan)?,
        };
        let Some(status) = held else { return Ok(()) };
        // A line that is lost would claim a protection by silence.
        wire::send(control, &Note::Holds(Protection::new(self.line, status)), &[])
            .map_err(|error| StepError::io("cannot report", &error, ""))
    }
}
