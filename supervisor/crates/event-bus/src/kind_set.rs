//! Some kinds, as a subscriber names them.

use super::kind::{EventKind, UnknownKindError};

/// A set of kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KindSet(u64);

// A bit each.
const _: () = assert!(EventKind::ALL.len() <= 64);

impl KindSet {
    /// Every kind.
    #[must_use]
    pub fn all() -> Self {
        EventKind::ALL.iter().copied().collect()
    }

    /// The kinds that words select: names, `FAMILY.*`, or `*`. No word selects all.
    ///
    /// # Errors
    /// [`UnknownKindError`] for the first word that selects none.
    pub fn selected<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Self, UnknownKindError> {
        let mut set = Self::default();
        for word in words {
            set = set.with(EventKind::selected(word)?.into_iter().collect());
        }
        Ok(if set == Self::default() { Self::all() } else { set })
    }

    /// Whether a kind is in it.
    #[must_use]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & bit(kind) != 0
    }

    /// Whether any kind is in both.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }
}

const fn bit(kind: EventKind) -> u64 {
    1 << kind as u64
}

impl From<EventKind> for KindSet {
    fn from(kind: EventKind) -> Self {
        Self(bit(kind))
    }
}

impl<const N: usize> From<[EventKind; N]> for KindSet {
    fn from(kinds: [EventKind; N]) -> Self {
        kinds.into_iter().collect()
    }
}

impl FromIterator<EventKind> for KindSet {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::default(), |set, kind| set.with(kind.into()))
    }
}
