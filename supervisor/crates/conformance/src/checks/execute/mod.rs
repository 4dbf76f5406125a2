//! Calls of actions.

pub(super) mod answers;
pub(super) mod arguments;
pub(super) mod at_once;

use talon_sanitize::Sanitized;

use crate::bench::Finding;

/// What is said where no action may be called.
pub(super) const NOTHING_TO_CALL: &str = "no action may be called: name one with --action 'NAME KEY=VALUE', or mark those that change nothing as read_only";

/// Keeps the worst of what was found.
#[derive(Default)]
pub(super) struct Worst {
    warning: Option<Sanitized>,
}

impl Worst {
    /// Takes one finding; a failure ends it all.
    pub(super) fn take(&mut self, finding: Finding) -> Result<(), Finding> {
        match finding {
            Finding::Fail(_) => return Err(finding),
            Finding::Warn(text) => {
                self.warning.get_or_insert(text);
            }
            Finding::Pass(_) | Finding::Skip(_) => {}
        }
        Ok(())
    }

    pub(super) fn found(self, pass: Sanitized) -> Finding {
        self.warning.map_or(Finding::Pass(pass), Finding::Warn)
    }
}
