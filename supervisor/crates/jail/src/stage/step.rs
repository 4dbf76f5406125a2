//! Defines steps, and what a failure means in each mode.

use super::request::Plan;
use super::step_error::StepError;
use crate::report::{Protection, Status};
use crate::spec::Mode;

/// The exit code of a stage or its child when the program did not run. The supervisor has the reason by then;
/// sysexits.h calls this number "internal software error".
pub(super) const NOT_RUN_EXIT_CODE: i32 = 70;

/// One step of the stage or of its child.
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

/// Executes steps in order; an error comes with the name of its step.
pub(super) fn run_steps(steps: &[Step], plan: &Plan) -> Result<(), (&'static str, StepError)> {
    for step in steps {
        step.execute(plan).map_err(|error| (step.name, error))?;
    }
    Ok(())
}
