//! Counts of writes and commits.

/// Write counters since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Writes that succeeded.
    pub writes: u64,
    /// Commits they took. Each is one fsync.
    pub commits: u64,
}
