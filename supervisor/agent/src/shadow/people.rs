//! What is counted over all people.

/// How many people, and ghosts of theirs, are in a state that operators want to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PeopleCounts {
    /// People whose loop rests.
    pub(super) paused: u32,
    /// People whose tokens or money of today are spent.
    pub(super) budget_spent: u32,
    /// Ghosts that wait.
    pub(super) waiting: u32,
}
