//! Computes fingerprints of text: hashes of n-grams.

use std::cell::Cell;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::fast::RandomState;

use super::gram_length::GRAM_BYTES;
use super::normalized_buffer::NormalizedBuffer;

/// A fingerprint is stored for every position that is a multiple of this. Together with [`GRAM_BYTES`] it
/// makes 32 the shortest run that is certain to be found.
pub(super) const STRIDE: usize = 9;

/// The largest number of fingerprints in one batch: all of a full buffer where they are stored, and a few
/// microseconds' work for the caller.
const BATCH: usize = 512;

/// The buffers for computing fingerprints.
struct ScratchBuffers {
    normalized: NormalizedBuffer,
    batch: [u64; BATCH],
}

thread_local! {
    /// Buffers that are not in use, for the thread's next texts: 8 KiB each, which need not be zeroed for
    /// each text. There are at most two, because a lookup may have to insert deferred texts first.
    static SCRATCH_POOL: Cell<Vec<Box<ScratchBuffers>>> = const { Cell::new(Vec::new()) };
}

impl ScratchBuffers {
    fn take() -> Box<Self> {
        let mut pool = SCRATCH_POOL.take();
        let buffers = pool.pop();
        SCRATCH_POOL.set(pool);
        buffers.unwrap_or_else(|| Box::new(Self { normalized: NormalizedBuffer::new(), batch: [0; BATCH] }))
    }

    fn release(self: Box<Self>) {
        let mut pool = SCRATCH_POOL.take();
        pool.push(self);
        SCRATCH_POOL.set(pool);
    }
}

/// Whether a text is long enough for an n-gram; no character's lower case takes more than one and a half
/// times its bytes.
pub(super) fn may_contain_gram(text: &str) -> bool {
    text.len() * 3 >= GRAM_BYTES * 2
}

/// Appends the part of a text that is compared: its letters and digits, in lower case.
pub(super) fn normalize(text: &str, to: &mut Vec<u8>) {
    let mut buffers = ScratchBuffers::take();
    let mut rest = text;
    while !rest.is_empty() {
        buffers.normalized.clear();
        rest = buffers.normalized.fill(rest);
        to.extend_from_slice(buffers.normalized.bytes());
    }
    buffers.release();
}

/// Hashes n-grams with a random seed, so that collisions cannot be constructed.
pub(super) struct NGramHasher {
    state: RandomState,
}

impl NGramHasher {
    pub(super) fn new() -> Self {
        Self { state: RandomState::default() }
    }

    /// For lookups. Passes the fingerprints to `found` in batches, like [`Self::hash_every_stride`], so that
    /// a caller that holds a lock for each batch does not hold it for long. `found` may modify the batch.
    pub(super) fn hash_every_position(&self, text: &str, found: impl FnMut(&mut [u64])) {
        self.hash_text(text, 1, found);
    }

    /// For storing.
    pub(super) fn hash_every_stride(&self, text: &str, found: impl FnMut(&mut [u64])) {
        self.hash_text(text, STRIDE, found);
    }

    /// For storing, of text that was [normalized](letters_of) before.
    pub(super) fn hash_normalized(&self, letters: &[u8], mut found: impl FnMut(&mut [u64])) {
        let mut buffers = ScratchBuffers::take();
        self.hash_buffer(letters, STRIDE, &mut buffers.batch, &mut found);
        buffers.release();
    }

    /// The fingerprint of a whole value, given in letters and digits.
    pub(super) fn hash_value(&self, letters: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write(letters);
        hasher.finish()
    }

    fn hash_text(&self, text: &str, stride: usize, mut found: impl FnMut(&mut [u64])) {
        if !may_contain_gram(text) {
            return;
        }
        let mut buffers = ScratchBuffers::take();
        let ScratchBuffers { normalized: kept, batch } = &mut *buffers;
        kept.clear();
        let mut rest = text;
        while !rest.is_empty() {
            rest = kept.fill(rest);
            self.hash_buffer(kept.bytes(), stride, batch, &mut found);
            kept.discard_hashed(stride);
        }
        buffers.release();
    }

    /// One fingerprint for each complete n-gram.
    fn hash_buffer(
        &self,
        kept: &[u8],
        stride: usize,
        batch: &mut [u64; BATCH],
        found: &mut impl FnMut(&mut [u64]),
    ) {
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
    fn fingerprint(&self, piece: &[u8; GRAM_BYTES]) -> Option<u64> {
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
        let grams = NGramHasher::new();
        for text in ["0".repeat(100), "no ".repeat(100)] {
            grams.hash_every_position(&text, |found| panic!("{text}: {found:?}"));
        }
    }

    #[test]
    fn a_text_that_is_longer_in_lower_case_has_its_piece() {
        let (grams, mut found) = (NGramHasher::new(), 0);
        grams.hash_every_position(&"aß\u{130}".repeat(4), |some| found += some.len());
        assert_eq!(found, 1);
    }

    proptest! {
        #[test]
        fn every_common_piece_of_32_is_found(
            piece in "[a-z0-9]{32,60}", before in "[ -~]{0,40}", after in "[ -~]{0,40}", around in "[ -~]{0,20}",
        ) {
            let grams = NGramHasher::new();
            let mut kept: HashSet<u64> = HashSet::new();
            grams.hash_every_stride(&format!("{before} {piece} {after}"), |grams| kept.extend(&*grams));
            let mut found = false;
            grams.hash_every_position(&format!("{around} {piece}"), |grams| {
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
            let grams = NGramHasher::new();
            let lower: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
            let of = |text: &str, every: fn(&NGramHasher, &str, &mut Vec<u64>)| {
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
                grams.hash_every_position(text, |some| found.extend(&*some));
            });
            prop_assert_eq!(&found, &expected);

            let mut expected = Vec::new();
            for piece in lower.as_bytes().array_windows().step_by(STRIDE) {
                expected.extend(grams.fingerprint(piece));
            }
            let found = of(&text, |grams, text, found| {
                grams.hash_every_stride(text, |some| found.extend(&*some));
            });
            prop_assert_eq!(&found, &expected);
        }
    }
}
