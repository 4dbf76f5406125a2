//! Results of calls, and their counts per tool.

use serde::{Deserialize, Serialize};

use crate::progress::Fingerprint;

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call's outcome, as the host reports it. It is not guessed from words like "failed" in the text, which a page
    /// about failures contains, too.
    pub ran: CallOutcome,
    /// The text for the model: the guarded block, or a message of the agent.
    pub block: String,
    /// The tool's output without its envelope, for comparing results: delimiters may contain a nonce and the call's id,
    /// so that no two blocks would be equal.
    pub said: String,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// The tool succeeded.
    Succeeded,
    /// The tool failed, was not allowed, or its arguments did not fit.
    Failed,
    /// There is no such tool.
    NotOffered,
    /// Not run, because the answer has more calls than may run at once. Not an error.
    OverTheLimit,
}

/// The counts of one tool in a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolStats {
    errors: u32,
    streak: Option<(Fingerprint, u32)>,
}

impl ToolStats {
    /// Errors minus those that successes cancelled.
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// Consecutive successes with the same arguments and result.
    #[must_use]
    pub fn identical_successes(&self) -> u32 {
        self.streak.map_or(0, |(_, times)| times)
    }

    /// A success cancels one error. If it cancelled all, a tool that fails seven times out of eight would go on for
    /// ever; if it cancelled none, a long turn would end over a tool that mostly works.
    pub(super) fn succeeded(&mut self, print: Fingerprint) {
        self.errors = self.errors.saturating_sub(1);
        self.streak = match self.streak {
            Some((last, times)) if last == print => Some((last, times.saturating_add(1))),
            _ => Some((print, 1)),
        };
    }

    /// An error ends a series of successes: something changed.
    pub(super) fn failed(&mut self) {
        self.errors = self.errors.saturating_add(1);
        self.streak = None;
    }
}
