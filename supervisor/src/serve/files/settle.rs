//! Decides when a change has settled: pure.

use super::look::Now;

/// The state that was applied last, and a different one of the last scan.
#[derive(Debug)]
pub(super) struct Settle {
    acted: Now,
    seen: Option<Now>,
}

/// The result of a scan for one subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Unchanged.
    Same,
    /// Changed, and may still be changing: scan again.
    Open,
    /// Changed, and equal in the last two scans: apply it.
    Settled(Now),
}

impl Settle {
    /// This state counts as applied.
    pub(super) fn at(now: Now) -> Self {
        Self { acted: now, seen: None }
    }

    /// Whether it was absent when last applied, and still is.
    pub(super) fn is_gone(&self) -> bool {
        self.acted == Now::Gone && self.seen.is_none()
    }

    pub(super) fn step(&mut self, now: Now) -> Step {
        if now == self.acted || now == Now::Unknown {
            self.seen = None;
            return Step::Same;
        }
        if self.seen.as_ref() == Some(&now) {
            self.seen = None;
            self.acted = now.clone();
            return Step::Settled(now);
        }
        self.seen = Some(now);
        Step::Open
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is(digest: &str) -> Now {
        Now::Is(digest.to_owned())
    }

    #[test]
    fn what_is_being_written_is_not_taken() {
        let mut settle = Settle::at(is("old"));
        for half in ["a", "ab", "abc"] {
            assert_eq!(settle.step(is(half)), Step::Open);
        }
        assert_eq!(settle.step(is("abc")), Step::Settled(is("abc")));
        assert_eq!(settle.step(is("abc")), Step::Same, "it is tried once");
    }

    #[test]
    fn what_is_moved_away_and_back_was_never_gone() {
        let mut settle = Settle::at(is("old"));
        assert_eq!(settle.step(Now::Gone), Step::Open);
        assert_eq!(settle.step(is("old")), Step::Same);
        assert_eq!(settle.step(Now::Gone), Step::Open);
    }

    #[test]
    fn what_nobody_can_tell_changes_nothing() {
        let mut settle = Settle::at(is("old"));
        assert_eq!(settle.step(Now::Unknown), Step::Same);
        assert_eq!(settle.step(Now::Unknown), Step::Same);
        assert_eq!(settle.step(is("old")), Step::Same);
    }

    proptest! {
        /// Two equal scans in a row are necessary and sufficient, whatever came before.
        #[test]
        fn it_acts_exactly_at_the_second_of_two_equal_looks(looks in prop::collection::vec(0_u8..3, 0..50)) {
            let mut settle = Settle::at(is("0"));
            let (mut acted, mut before) = (0_u8, None);
            for look in looks {
                let step = settle.step(is(&look.to_string()));
                if look == acted {
                    prop_assert_eq!(step, Step::Same);
                    before = None;
                } else if before == Some(look) {
                    prop_assert_eq!(step, Step::Settled(is(&look.to_string())));
                    (acted, before) = (look, None);
                } else {
                    prop_assert_eq!(step, Step::Open);
                    before = Some(look);
                }
            }
        }
    }
}
