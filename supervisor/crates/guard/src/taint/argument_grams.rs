//! The fingerprints of a call's arguments, which do not count against a plugin that repeats them.

use smallvec::SmallVec;

use super::gram_length::GRAM_BYTES;

/// How many fingerprints of a call's arguments are kept. A bound on memory: it suits arguments of 16 KiB, and
/// plugins usually repeat the beginning.
pub(super) const MAX_ARGUMENT_GRAMS: usize = 16 * 1024;

/// This many are stored inline: those of arguments of about a line, as most are.
const INLINE_GRAMS: usize = 24;

/// The fingerprints of a call's arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ArgumentGrams {
    pub(super) grams: SmallVec<[u64; INLINE_GRAMS]>,
}

impl ArgumentGrams {
    /// Reserves space for the fingerprints of a text of this length.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.grams.reserve((bytes + 1).saturating_sub(GRAM_BYTES).min(MAX_ARGUMENT_GRAMS));
    }

    pub(super) fn add(&mut self, grams: &[u64]) {
        let room = MAX_ARGUMENT_GRAMS.saturating_sub(self.grams.len());
        self.grams.extend_from_slice(&grams[..grams.len().min(room)]);
    }

    /// Their size in memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.grams)
    }

    /// Sorts them for [`Self::seen`].
    pub(super) fn sort(&mut self) {
        self.grams.sort_unstable();
    }

    /// A filter for looking up many of them, once they are [sorted](Self::sort).
    pub(super) fn filter(&self) -> GramFilter<'_> {
        let mut bits = [0; FILTER_WORDS];
        for &gram in &self.grams {
            bits[GramFilter::word(gram)] |= GramFilter::bit(gram);
        }
        GramFilter { grams: &self.grams, bits }
    }
}

/// The sorted fingerprints of a call's arguments, with a bit filter in front.
pub(super) struct GramFilter<'o> {
    grams: &'o [u64],
    /// One bit for each fingerprint, by its lowest bits. Nearly all fingerprints of an answer are not the
    /// call's, and the filter rejects those without a search.
    bits: [u64; FILTER_WORDS],
}

/// The number of words of the filter in [`GramFilter`]: small enough to be built for each answer.
const FILTER_WORDS: usize = 16;

impl GramFilter<'_> {
    /// Moves the fingerprints that are not the call's to the front, and returns them.
    pub(super) fn exclude<'g>(&self, grams: &'g mut [u64]) -> &'g [u64] {
        if self.grams.is_empty() {
            return grams;
        }
        // Nearly always there is none to exclude, and nothing to move.
        let Some(first) = grams.iter().position(|gram| self.has(*gram)) else { return grams };
        let mut count = first;
        for index in first..grams.len() {
            let gram = grams[index];
            grams[count] = gram;
            count += usize::from(!self.has(gram));
        }
        &grams[..count]
    }

    fn has(&self, gram: u64) -> bool {
        self.bits[Self::word(gram)] & Self::bit(gram) != 0 && self.grams.binary_search(&gram).is_ok()
    }

    fn word(gram: u64) -> usize {
        (gram >> 6) as usize % FILTER_WORDS
    }

    fn bit(gram: u64) -> u64 {
        1 << (gram & 63)
    }
}
