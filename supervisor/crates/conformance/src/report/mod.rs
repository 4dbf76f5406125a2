//! How a run came out.

mod json;
mod junit;

use std::time::Duration;

use talon_sanitize::Sanitized;

pub use self::json::json;
pub use self::junit::junit;
use crate::check::Check;

/// How one check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Pass,
    /// The plugin is wrong.
    Fail,
    /// It works, and somebody will be sorry.
    Warn,
    /// It was not made; the detail says why.
    Skip,
}

impl Verdict {
    /// The word for it.
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

/// One check and how it came out.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The check.
    pub check: &'static Check,
    /// How it came out.
    pub verdict: Verdict,
    /// What was seen, bounded; empty if there is nothing to say.
    pub detail: Sanitized,
    /// How long it took.
    pub took: Duration,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The plugin's name.
    pub plugin: Sanitized,
    /// What was run.
    pub program: Sanitized,
    /// The dialect that it spoke, if it got that far.
    pub dialect: Option<&'static str>,
    /// The profile of its jail.
    pub profile: Sanitized,
    /// Which actions were called, and why others were not.
    pub called: Sanitized,
    /// Each check that was wanted, in order.
    pub outcomes: Vec<Outcome>,
    /// How long all of it took.
    pub took: Duration,
}

impl Report {
    /// How many checks came out like this.
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
