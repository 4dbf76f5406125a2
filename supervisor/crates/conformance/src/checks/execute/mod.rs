//! Checks of calls to actions.

pub(super) mod answers;
pub(super) mod arguments;
pub(super) mod concurrency;
pub(super) mod roles;
pub(super) mod storage;

use talon_sanitize::Sanitized;

use crate::harness::Finding;

/// The text of a skipped check when no action may be called.
pub(super) const NOTHING_TO_CALL: &str = "no action may be called: name one with --action 'NAME KEY=VALUE', or mark those that change nothing as read_only";

/// Keeps the first warning among several findings.
#[derive(Default)]
pub(super) struct FindingAccumulator {
    warning: Option<Sanitized>,
}

impl FindingAccumulator {
    /// Adds one finding; a failure ends the check.
    pub(super) fn add(&mut self, finding: Finding) -> Result<(), Finding> {
        match finding {
            Finding::Fail(_) => return Err(finding),
            Finding::Warn(text) => {
                self.warning.get_or_insert(text);
            }
            Finding::Pass(_) | Finding::Skip(_) => {}
        }
        Ok(())
    }

    pub(super) fn finish(self, pass: Sanitized) -> Finding {
        self.warning.map_or(Finding::Pass(pass), Finding::Warn)
    }
}
