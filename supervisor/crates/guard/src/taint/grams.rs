//! Takes fingerprints of text.

use std::hash::{BuildHasher as _, Hasher as _};
use std::iter::StepBy;
use std::slice::Windows;

use foldhash::quality::RandomState;

use super::kept::Kept;

/// How long the piece is that one fingerprint stands for, in normalised bytes. Shorter ones occur by chance: the words
/// "the following files were" are 21 letters.
pub(super) const GRAM: usize = 24;

/// At every how many-th position a fingerprint is remembered. Together with [`GRAM`] it makes the shortest piece that is
/// certain to be found 32.
pub(super) const STRIDE: usize = 9;

/// Hashes pieces with a seed of its own, so that nobody can make up two that collide.
pub(super) struct Grams {
    state: RandomState,
}

impl Grams {
    pub(super) fn new() -> Self {
        Self { state: RandomState::default() }
    }

    /// For what is looked up. Hands over the fingerprints of some text at a time, as the other one does, so that whoever
    /// holds a lock meanwhile does not hold it for long.
    pub(super) fn of_every_position(&self, text: &str, found: impl FnMut(Fingerprints<'_>)) {
        self.each(text, 1, found);
    }

    /// For what is remembered.
    pub(super) fn of_every_stride(&self, text: &str, found: impl FnMut(Fingerprints<'_>)) {
        self.each(text, STRIDE, found);
    }

    fn each(&self, text: &str, stride: usize, mut found: impl FnMut(Fingerprints<'_>)) {
        if text.len() < GRAM {
            return;
        }
        let mut kept = Kept::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = kept.fill(rest);
            found(self.of(kept.bytes(), stride));
            kept.forget_before(stride);
        }
    }

    /// One for each piece that is there in full.
    fn of<'k>(&'k self, kept: &'k [u8], stride: usize) -> Fingerprints<'k> {
        Fingerprints { pieces: kept.windows(GRAM).step_by(stride), state: &self.state }
    }
}

/// The fingerprints of some text.
pub(super) struct Fingerprints<'k> {
    pieces: StepBy<Windows<'k, u8>>,
    state: &'k RandomState,
}

impl Iterator for Fingerprints<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        loop {
            let (words, _) = self.pieces.next()?.as_chunks::<8>();
            let [a, b, c] = [words[0], words[1], words[2]].map(u64::from_le_bytes);
            // One thing over and over (zeros, dashes in words, filler) says nothing about where a text comes from.
            if a == b && b == c {
                continue;
            }
            let mut hasher = self.state.build_hasher();
            hasher.write_u64(a);
            hasher.write_u128(u128::from(b) << 64 | u128::from(c));
            return Some(hasher.finish());
        }
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
            grams.of_every_position(&text, |found| assert_eq!(found.count(), 0, "{text}"));
        }
    }

    proptest! {
        #[test]
        fn every_common_piece_of_32_is_found(
            piece in "[a-z0-9]{32,60}", before in "[ -~]{0,40}", after in "[ -~]{0,40}", around in "[ -~]{0,20}",
        ) {
            let grams = Grams::new();
            let mut kept = HashSet::new();
            grams.of_every_stride(&format!("{before} {piece} {after}"), |grams| kept.extend(grams));
            let mut found = false;
            grams.of_every_position(&format!("{around} {piece}"), |mut grams| {
                found |= grams.any(|gram| kept.contains(&gram));
            });
            prop_assert!(found);
        }

        #[test]
        fn a_long_text_has_the_fingerprints_of_its_letters_and_digits(text in "[ -~äß\\u{130}—]{0,3000}") {
            let grams = Grams::new();
            let lower: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
            let of = |text: &str, every: fn(&Grams, &str, &mut Vec<u64>)| {
                let mut found = Vec::new();
                every(&grams, text, &mut found);
                found
            };
            // Nothing is in between, nothing has to be made lower, and there is one way to cut it into pieces.
            let mut expected = Vec::new();
            for piece in lower.as_bytes().windows(GRAM) {
                expected.extend(grams.of(piece, 1));
            }
            let found = of(&text, |grams, text, found| {
                grams.of_every_position(text, |some| found.extend(some));
            });
            prop_assert_eq!(&found, &expected);

            let mut expected = Vec::new();
            for piece in lower.as_bytes().windows(GRAM).step_by(STRIDE) {
                expected.extend(grams.of(piece, 1));
            }
            let found = of(&text, |grams, text, found| {
                grams.of_every_stride(text, |some| found.extend(some));
            });
            prop_assert_eq!(&found, &expected);
        }
    }
}
