//! Decides when a change has settled: pure.

use super::subject::SubjectState;

/// The state that was applied last, and a different one of the last scan.
#[derive(Debug)]
pub(super) struct Debounce {
    applied: SubjectState,
    seen: Option<SubjectState>,
}

/// The result of a scan for one subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DebounceStep {
    /// Unchanged.
    Unchanged,
    /// Changed, and may still be changing: scan again.
    Pending,
    /// Changed, and equal in the last two scans: apply it.
    Settled(SubjectState),
}

impl Debounce {
    /// This state counts as applied.
    pub(super) fn at(now: SubjectState) -> Self {
        Self { applied: now, seen: None }
    }

    /// Whether it was absent when last applied, and still is.
    pub(super) fn is_gone(&self) -> bool {
        self.applied == SubjectState::Gone && self.seen.is_none()
    }

    pub(super) fn step(&mut self, now: SubjectState) -> DebounceStep {
        if now == self.applied || now == SubjectState::Unknown {
            self.seen = None;
            return DebounceStep::Unchanged;
        }
        if self.seen.as_ref() == Some(&now) {
            self.seen = None;
            self.applied = now.clone();
            return DebounceStep::Settled(now);
        }
        self.seen = Some(now);
        DebounceStep::Pending
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is(digest: &str) -> SubjectState {
        SubjectState::Present(digest.to_owned())
    }

    // Promises: UPGRADE-11
    #[test]
    fn what_is_being_written_is_not_taken() {
        let mut settle = Debounce::at(is("old"));
        for half in ["a", "ab", "abc"] {
            assert_eq!(settle.step(is(half)), DebounceStep::Pending);
        }
        assert_eq!(settle.step(is("abc")), DebounceStep::Settled(is("abc")));
        assert_eq!(settle.step(is("abc")), DebounceStep::Unchanged, "it is tried once");
    }

    #[test]
    fn what_is_moved_away_and_back_was_never_gone() {
        let mut settle = Debounce::at(is("old"));
        assert_eq!(settle.step(SubjectState::Gone), DebounceStep::Pending);
        assert_eq!(settle.step(is("old")), DebounceStep::Unchanged);
        assert_eq!(settle.step(SubjectState::Gone), DebounceStep::Pending);
    }

    #[test]
    fn what_nobody_can_tell_changes_nothing() {
        let mut settle = Debounce::at(is("old"));
        assert_eq!(settle.step(SubjectState::Unknown), DebounceStep::Unchanged);
        assert_eq!(settle.step(SubjectState::Unknown), DebounceStep::Unchanged);
        assert_eq!(settle.step(is("old")), DebounceStep::Unchanged);
    }

    proptest! {
        /// Two equal scans in a row are necessary and sufficient, whatever came before.
        #[test]
        fn it_acts_exactly_at_the_second_of_two_equal_looks(looks in prop::collection::vec(0_u8..3, 0..50)) {
            let mut settle = Debounce::at(is("0"));
            let (mut acted, mut before) = (0_u8, None);
            for look in looks {
                let step = settle.step(is(&look.to_string()));
                if look == acted {
                    prop_assert_eq!(step, DebounceStep::Unchanged);
                    before = None;
                } else if before == Some(look) {
                    prop_assert_eq!(step, DebounceStep::Settled(is(&look.to_string())));
                    (acted, before) = (look, None);
                } else {
                    prop_assert_eq!(step, DebounceStep::Pending);
                    before = Some(look);
                }
            }
        }
    }
}
