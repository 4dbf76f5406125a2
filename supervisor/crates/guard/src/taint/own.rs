//! What a call brings itself, which is not held against the plugin that repeats it.

use smallvec::SmallVec;

use super::grams::GRAM;

/// How many pieces of its own a call may bring without their being held against the plugin that repeats them. A bound on
/// memory: it suits arguments of 16 KiB, and what plugins repeat is their beginning.
pub(super) const MAX_OWN: usize = 16 * 1024;

/// So many of them need no memory of their own: those of arguments of a line or so, as most are.
const FEW: usize = 24;

/// The pieces that a call brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Own {
    pub(super) grams: SmallVec<[u64; FEW]>,
}

impl Own {
    /// For the pieces of a text of this length.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.grams.reserve((bytes + 1).saturating_sub(GRAM).min(MAX_OWN));
    }

    pub(super) fn add(&mut self, grams: &[u64]) {
        let room = MAX_OWN.saturating_sub(self.grams.len());
        self.grams.extend_from_slice(&grams[..grams.len().min(room)]);
    }

    /// What they take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.grams)
    }

    /// Makes them ready for looking many of them up.
    pub(super) fn sort(&mut self) {
        self.grams.sort_unstable();
    }

    /// For looking many of them up, once they are [sorted](Self::sort).
    pub(super) fn seen(&self) -> Seen<'_> {
        let mut bits = [0; WORDS];
        for &gram in &self.grams {
            bits[Seen::word(gram)] |= Seen::bit(gram);
        }
        Seen { grams: &self.grams, bits }
    }
}

/// The pieces that a call brought, sorted.
pub(super) struct Seen<'o> {
    grams: &'o [u64],
    /// One bit for each gram, by its lowest bits. Nearly all grams of an answer are not the call's, and this tells so
    /// without a search.
    bits: [u64; WORDS],
}

/// How many words have room for the bits of [`Seen`]: few enough to be made for each answer.
const WORDS: usize = 16;

impl Seen<'_> {
    /// Those of these that are not the call's, moved to the front.
    pub(super) fn without<'g>(&self, grams: &'g mut [u64]) -> &'g [u64] {
        if self.grams.is_empty() {
            return grams;
        }
        // Nearly always there are none to leave out, and nothing to move.
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
