//! What calls brought, counted.

use serde::{Deserialize, Serialize};

use crate::progress::Fingerprint;

/// What came of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// How it went: the host says so by the outcome of its answer, so that nobody has to guess it from words like "failed" in a
    /// text, which a page about failures holds, too.
    pub ran: Ran,
    /// What the model gets: the guarded block, or our own words.
    pub block: String,
    /// What the tool said, without its envelope, by which one result is told from another: delimiters may carry a nonce and the
    /// call's id, and no two blocks would be equal.
    pub said: String,
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// The tool did it.
    Succeeded,
    /// It could not, was not allowed to, or its arguments did not fit.
    Failed,
    /// There is no such tool.
    NotOffered,
    /// Not run, because the answer called more than may run at once. Nobody's error.
    OverTheLimit,
}

/// How one tool did in a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    errors: u32,
    streak: Option<(Fingerprint, u32)>,
}

impl Tally {
    /// Errors that count.
    #[must_use]
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// How often in a row it did the same with the same result.
    #[must_use]
    pub fn identical_successes(&self) -> u32 {
        self.streak.map_or(0, |(_, times)| times)
    }

    /// A success takes one error back. Were it to take back all of them, a tool that fails seven times out of eight would go on
    /// for ever; and if it took back none, a long turn would end over a tool that mostly works.
    pub(super) fn succeeded(&mut self, print: Fingerprint) {
        self.errors = self.errors.saturating_sub(1);
        self.streak = match self.streak {
            Some((last, times)) if last == print => Some((last, times.saturating_add(1))),
            _ => Some((print, 1)),
        };
    }

    /// An error ends a row of successes: something changed.
    pub(super) fn failed(&mut self) {
        self.errors = self.errors.saturating_add(1);
        self.streak = None;
    }
}
