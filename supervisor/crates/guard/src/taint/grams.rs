//! Computes fingerprints of text: hashes of n-grams.

use std::cell::Cell;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::RandomState;

use super::kept::Kept;

/// The length of the n-gram that one fingerprint stands for, in normalized bytes. Shorter ones occur by chance: the
/// words "the following files were" are 21 letters.
pub(super) const GRAM: usize = 24;

/// A fingerprint is stored for every position that is a multiple of this. Together with [`GRAM`] it makes 32 the
/// shortest run that is certain to be found.
pub(super) const STRIDE: usize = 9;

/// The largest number of fingerprints in one batch: all of a full buffer where they are stored, and a few microseconds'
/// work for the caller.
const BATCH: usize = 512;

/// The buffers for computing fingerprints.
struct Desk {
    kept: Kept,
    batch: [u64; BATCH],
}

thread_local! {
    /// Buffers that are not in use, for the thread's next texts: 8 KiB each, which need not be zeroed for each text.
    /// There are at most two, because a lookup may have to insert deferred texts first.
    static DESKS: Cell<Vec<Box<Desk>>> = const { Cell::new(Vec::new()) };
}

impl Desk {
    fn take() -> Box<Self> {
        let mut desks = DESKS.take();
        let desk = desks.pop();
        DESKS.set(desks);
        desk.unwrap_or_else(|| Box::new(Self { kept: Kept::new(), batch: [0; BATCH] }))
    }

    fn lay_aside(self: Box<Self>) {
        let mut desks = DESKS.take();
        desks.push(self);
        DESKS.set(desks);
    }
}

/// Whether a text is long enough for an n-gram; no character's lower case takes more than one and a half times its
/// bytes.
pub(super) fn may_hold_a_piece(text: &str) -> bool {
    text.len() * 3 >= GRAM * 2
}

/// Appends the part of a text that is compared: its letters and digits, in lower case.
pub(super) fn letters_of(text: &str, to: &mut Vec<u8>) {
    let mut desk = Desk::take();
    let mut rest = text;
    while !rest.is_empty() {
        desk.kept.clear();
        rest = desk.kept.fill(rest);
        to.extend_from_slice(desk.kept.bytes());
    }
    desk.lay_aside();
}

/// Hashes n-grams with a random seed, so that collisions cannot be constructed.
pub(super) struct Grams {
    state: RandomState,
}

impl Grams {
    pub(super) fn new() -> Self {
        Self { state: RandomState::default() }
    }

    /// For lookups. Passes the fingerprints to `found` in batches, like [`Self::of_every_stride`], so that a caller
    /// that holds a lock for each batch does not hold it for long. `found` may modify the batch.
    pub(super) fn of_every_position(&self, text: &str, found: impl FnMut(&mut [u64])) {
        self.each(text, 1, found);
    }

    /// For storing.
    pub(super) fn of_every_stride(&self, text: &str, found: impl FnMut(&mut [u64])) {
        self.each(text, STRIDE, found);
    }

    /// For storing, of text that was [normalized](letters_of) before.
    pub(super) fn of_letters(&self, letters: &[u8], mut found: impl FnMut(&mut [u64])) {
        let mut desk = Desk::take();
        self.of(letters, STRIDE, &mut desk.batch, &mut found);
        desk.lay_aside();
    }

    fn each(&self, text: &str, stride: usize, mut found: impl FnMut(&mut [u64])) {
        if !may_hold_a_piece(text) {
            return;
        }
        let mut desk = Desk::take();
        let Desk { kept, batch } = &mut *desk;
        kept.clear();
        let mut rest = text;
        while !rest.is_empty() {
            rest = kept.fill(rest);
            self.of(kept.bytes(), stride, batch, &mut found);
            kept.forget_before(stride);
        }
        desk.lay_aside();
    }

    /// One fingerprint for each complete n-gram.
    fn of(&self, kept: &[u8], stride: usize, batch: &mut [u64; BATCH], found: &mut impl FnMut(&mut [u64])) {
        let mut rest = kept;
        let mut count = 0;
        while let Some(piece) = rest.first_chunk() {
            rest = rest.get(stride..).unwrap_or_default();
            let Some(gram) = self.fingerprint(piece) else { continue };
            batch[count] = gram;
            count += 1;
            if count == BATCH {
                found(batch);
                count = 0;
            }
        }
        if count > 0 {
            found(&mut batch[..count]);
        }
    }

    #[inline]
    fn fingerprint(&self, piece: &[u8; GRAM]) -> Option<u64> {
        let (words, _) = piece.as_chunks::<8>();
        let [a, b, c] = [words[0], words[1], words[2]].map(u64::from_le_bytes);
        // Constant text (zeros, dashes in words, filler) says nothing about where a text comes from.
        if a == b && b == c {
            return None;
        }
        let mut hasher = self.state.build_hasher();
        hasher.write_u64(a);
        hasher.write_u128(u128::from(b) << 64 | u128::from(c));
        Some(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_thing_over_and_over_has_no_fingerprint() {
        let grams = Grams::new();
        for text in ["0".repeat(100), "no ".repeat(100)] {
            grams.of_every_position(&text, |found| panic!("{text}: {found:?}"));
        }
    }

    #[test]
    fn a_text_that_is_longer_in_lower_case_has_its_piece() {
        let (grams, mut found) = (Grams::new(), 0);
        grams.of_every_position(&"aß\u{130}".repeat(4), |some| found += some.len());
        assert_eq!(found, 1);
    }

    proptest! {
        #[test]
        fn every_common_piece_of_32_is_found(
            piece in "[a-z0-9]{32,60}", before in "[ -~]{0,40}", after in "[ -~]{0,40}", around in "[ -~]{0,20}",
        ) {
            let grams = Grams::new();
            let mut kept: HashSet<u64> = HashSet::new();
            grams.of_every_stride(&format!("{before} {piece} {after}"), |grams| kept.extend(&*grams));
            let mut found = false;
            grams.of_every_position(&format!("{around} {piece}"), |grams| {
                found |= grams.iter().any(|gram| kept.contains(gram));
            });
            prop_assert!(found);
        }

        #[test]
        fn a_long_text_has_the_fingerprints_of_its_letters_and_digits(
            once in "[ -~äß\\u{130}—]{0,1500}", times in 1..8_usize,
        ) {
            // Longer than the buffer.
            let text = once.repeat(times);
            let grams = Grams::new();
            let lower: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
            let of = |text: &str, every: fn(&Grams, &str, &mut Vec<u64>)| {
                let mut found = Vec::new();
                every(&grams, text, &mut found);
                found
            };
            // There is nothing to drop, nothing to convert to lower case, and one way to cut it into n-grams.
            let mut expected = Vec::new();
            for piece in lower.as_bytes().array_windows() {
                expected.extend(grams.fingerprint(piece));
            }
            let found = of(&text, |grams, text, found| {
                grams.of_every_position(text, |some| found.extend(&*some));
            });
            prop_assert_eq!(&found, &expected);

            let mut expected = Vec::new();
            for piece in lower.as_bytes().array_windows().step_by(STRIDE) {
                expected.extend(grams.fingerprint(piece));
            }
            let found = of(&text, |grams, text, found| {
                grams.of_every_stride(text, |some| found.extend(&*some));
            });
            prop_assert_eq!(&found, &expected);
        }
    }
}
