//! When a change counts: pure.

use super::look::Now;

/// What was acted upon last, and what the last look found instead.
#[derive(Debug)]
pub(super) struct Settle {
    acted: Now,
    seen: Option<Now>,
}

/// What a look came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is as it was.
    Same,
    /// It is different and may still change: look again.
    Open,
    /// It is different and was so at the look before: act.
    Settled(Now),
}

impl Settle {
    /// As it is, there is nothing to do.
    pub(super) fn at(now: Now) -> Self {
        Self { acted: now, seen: None }
    }

    /// Whether it was not there when that was acted upon, and has not come up since.
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
        /// Two looks that agree are enough, whatever came before them, and nothing less is.
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
