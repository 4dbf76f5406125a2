//! What becomes of planned times at which nothing could run.

/// The most missed times of a job that run.
pub(crate) const MAX_MISSED_RUNS: usize = 100;

/// What becomes of missed times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedPolicy {
    /// None runs.
    Skip,
    /// The latest runs, once for all.
    Once,
    /// The latest run, at most so many.
    All {
        /// How many, at least 1 and at most 100.
        most: usize,
    },
}

impl MissedPolicy {
    /// The most that run.
    pub(crate) fn most(self) -> usize {
        match self {
            Self::Skip => 0,
            Self::Once => 1,
            Self::All { most } => most.clamp(1, MAX_MISSED_RUNS),
        }
    }
}
