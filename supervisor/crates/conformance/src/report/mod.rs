//! The result of a run.

mod json;
mod junit;

use std::time::Duration;

use talon_sanitize::Sanitized;

pub use self::json::json;
pub use self::junit::junit;
use crate::check::Check;

/// The verdict of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Pass,
    /// The plugin is wrong.
    Fail,
    /// The plugin works but may cause trouble.
    Warn,
    /// The check was not performed; the detail says why.
    Skip,
}

impl Verdict {
    /// The name of the verdict.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Skip => "skip",
        }
    }
}

/// One check and its result.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The check.
    pub check: &'static Check,
    /// The verdict.
    pub verdict: Verdict,
    /// What was seen, bounded; empty if there is nothing to report.
    pub detail: Sanitized,
    /// The duration.
    pub took: Duration,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The plugin's name.
    pub plugin: Sanitized,
    /// The program that was run.
    pub program: Sanitized,
    /// The dialect that it used, if the handshake got that far.
    pub dialect: Option<&'static str>,
    /// The profile of its jail.
    pub profile: Sanitized,
    /// Which actions were called, and why others were not.
    pub called: Sanitized,
    /// The results of the selected checks, in order.
    pub outcomes: Vec<Outcome>,
    /// The duration of the run.
    pub took: Duration,
}

impl Report {
    /// The number of checks with this verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.verdict == verdict).count()
    }

    /// Whether no check failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.count(Verdict::Fail) == 0
    }
}
