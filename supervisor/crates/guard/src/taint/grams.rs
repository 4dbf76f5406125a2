//! Takes fingerprints of text.

use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::quality::RandomState;

/// How long the piece is that one fingerprint stands for, in normalised bytes. Shorter ones occur by chance: the words
/// "the following files were" are 21 letters.
pub(super) const GRAM: usize = 24;

/// At every how many-th position a fingerprint is remembered. Together with [`GRAM`] it makes the shortest piece that is
/// certain to be found 32.
pub(super) const STRIDE: usize = 9;

/// What becomes of a byte of ASCII: its lower case, and in the upper half 1 if it counts at all.
const KEPT: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() {
            table[byte] = 0x100 | (byte as u8).to_ascii_lowercase() as u16;
        }
        byte += 1;
    }
    table
};

/// So many bytes are written without asking after each whether there is room.
const CHUNK: usize = 8;

/// Hashes pieces with a seed of its own, so that nobody can make up two that collide.
pub(super) struct Grams {
    state: RandomState,
}

impl Grams {
    pub(super) fn new() -> Self {
        Self { state: RandomState::default() }
    }

    /// For what is looked up.
    pub(super) fn of_every_position(&self, text: &str, found: impl FnMut(u64)) {
        self.each(text, 1, found);
    }

    /// For what is remembered.
    pub(super) fn of_every_stride(&self, text: &str, found: impl FnMut(u64)) {
        self.each(text, STRIDE, found);
    }

    fn each(&self, text: &str, stride: usize, mut found: impl FnMut(u64)) {
        if text.len() < GRAM {
            return;
        }
        for gram in normalised(text).windows(GRAM).step_by(stride) {
            let (words, _) = gram.as_chunks::<8>();
            let [a, b, c] = [words[0], words[1], words[2]].map(u64::from_le_bytes);
            // One thing over and over (zeros, dashes in words, filler) says nothing about where a text comes from.
            if a == b && b == c {
                continue;
            }
            let mut hasher = self.state.build_hasher();
            hasher.write_u64(a);
            hasher.write_u128(u128::from(b) << 64 | u128::from(c));
            found(hasher.finish());
        }
    }
}

/// Letters and digits alone, in lower case.
fn normalised(text: &str) -> Vec<u8> {
    if !text.is_ascii() {
        let kept = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
        return kept.collect::<String>().into_bytes();
    }
    // Without a branch for each byte, because whether one counts is as good as random. All are written, and only those
    // that count move the end on.
    let mut out = vec![0; text.len() + CHUNK];
    let mut end = 0;
    let (chunks, rest) = text.as_bytes().as_chunks::<CHUNK>();
    for chunk in chunks {
        let place = out[end..].first_chunk_mut::<CHUNK>().expect("there is room for the rest and a chunk");
        let mut kept = 0;
        for byte in chunk {
            let entry = KEPT[usize::from(*byte)];
            place[kept % CHUNK] = entry as u8;
            kept += usize::from(entry >> 8);
        }
        end += kept;
    }
    for byte in rest {
        let entry = KEPT[usize::from(*byte)];
        out[end] = entry as u8;
        end += usize::from(entry >> 8);
    }
    out.truncate(end);
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_space_and_punctuation_do_not_count() {
        assert_eq!(normalised("He said: \"Go-on\",\n\tÄrger №1"), "hesaidgoonärger1".as_bytes());
        assert_eq!(normalised("He said: \"Go-on\",\n\tA1"), b"hesaidgoona1");
    }

    #[test]
    fn the_two_ways_of_normalising_agree() {
        let ascii: String = (0..128u8).map(char::from).collect();
        for length in 0..ascii.len() {
            let text = &ascii[length..];
            let slowly = normalised(&format!("{text}é"));
            assert_eq!(normalised(text), slowly[..slowly.len() - 2]);
        }
        assert_eq!(normalised(&"x".repeat(100)), "x".repeat(100).as_bytes());
    }

    #[test]
    fn one_thing_over_and_over_has_no_fingerprint() {
        let grams = Grams::new();
        for text in ["0".repeat(100), "no ".repeat(100)] {
            grams.of_every_position(&text, |_| panic!("{text}"));
        }
    }

    proptest! {
        #[test]
        fn every_common_piece_of_32_is_found(
            piece in "[a-z0-9]{32,60}", before in "[ -~]{0,40}", after in "[ -~]{0,40}", around in "[ -~]{0,20}",
        ) {
            let grams = Grams::new();
            let mut kept = HashSet::new();
            grams.of_every_stride(&format!("{before} {piece} {after}"), |gram| { kept.insert(gram); });
            let mut found = false;
            grams.of_every_position(&format!("{around} {piece}"), |gram| found |= kept.contains(&gram));
            prop_assert!(found);
        }
    }
}
