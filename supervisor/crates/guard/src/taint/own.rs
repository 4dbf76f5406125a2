//! The fingerprints of a call's arguments, which do not count against a plugin that repeats them.

use smallvec::SmallVec;

use super::grams::GRAM;

/// How many fingerprints of a call's arguments are kept. A bound on memory: it suits arguments of 16 KiB, and plugins
/// usually repeat the beginning.
pub(super) const MAX_OWN: usize = 16 * 1024;

/// This many are stored inline: those of arguments of about a line, as most are.
const FEW: usize = 24;

/// The fingerprints of a call's arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Own {
    pub(super) grams: SmallVec<[u64; FEW]>,
}

impl Own {
    /// Reserves space for the fingerprints of a text of this length.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.grams.reserve((bytes + 1).saturating_sub(GRAM).min(MAX_OWN));
    }

    pub(super) fn add(&mut self, grams: &[u64]) {
        let room = MAX_OWN.saturating_sub(self.grams.len());
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
    pub(super) fn seen(&self) -> Seen<'_> {
        let mut bits = [0; WORDS];
        for &gram in &self.grams {
            bits[Seen::word(gram)] |= Seen::bit(gram);
        }
        Seen { grams: &self.grams, bits }
    }
}

/// The sorted fingerprints of a call's arguments, with a bit filter in front.
pub(super) struct Seen<'o> {
    grams: &'o [u64],
    /// One bit for each fingerprint, by its lowest bits. Nearly all fingerprints of an answer are not the call's, and
    /// the filter rejects those without a search.
    bits: [u64; WORDS],
}

/// The number of words of the filter in [`Seen`]: small enough to be built for each answer.
const WORDS: usize = 16;

impl Seen<'_> {
    /// Moves the fingerprints that are not the call's to the front, and returns them.
    pub(super) fn without<'g>(&self, grams: &'g mut [u64]) -> &'g [u64] {
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
        (gram >> 6) as usize % WORDS
    }

    fn bit(gram: u64) -> u64 {
        1 << (gram & 63)
    }
}
