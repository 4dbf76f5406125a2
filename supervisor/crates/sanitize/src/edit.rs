//! The changes that a scan makes to a text.

use crate::family_counts::{Family, FindingKind};

/// One change to the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Offset in the original.
    pub(crate) at: usize,
    pub(crate) kind: EditKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// Insert the mark.
    Mark(Family, FindingKind),
    /// Replace `count` invisible or control characters up to `end`, of which `first` is the first, by a note.
    Note { first: char, count: usize, end: usize, family: Family },
}

impl Edit {
    /// A mark at this offset.
    pub(crate) fn mark(at: usize, family: Family, kind: FindingKind) -> Self {
        Self { at, kind: EditKind::Mark(family, kind) }
    }
}
