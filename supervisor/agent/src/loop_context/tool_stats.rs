//! The counts of one tool in a turn.

use crate::progress::Fingerprint;

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

    /// A success cancels one error. If it cancelled all, a tool that fails seven times out of eight would go
    /// on for ever; if it cancelled none, a long turn would end over a tool that mostly works.
    pub(super) fn succeeded(&mut self, print: Fingerprint) {
        self.errors = self.errors.saturating_sub(1);
        self.streak = match self.streak {
            Some((last, times)) if last == print => Some((last, times.saturating_add(1))),
            _ => Some((print, 1)),
        };
    }

    /// Begins the count of equal successes anew.
    pub(super) fn restart_streak(&mut self) {
        self.streak = None;
    }

    /// An error ends a series of successes: something changed.
    pub(super) fn failed(&mut self) {
        self.errors = self.errors.saturating_add(1);
        self.streak = None;
    }
}
