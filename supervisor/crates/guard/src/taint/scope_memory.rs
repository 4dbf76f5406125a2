//! The memory of one scope: fingerprints, and texts that are not fingerprinted yet.
//!
//! Taking the fingerprints of a large answer is the most expensive step of an answer, and is needed only once
//! a call has an argument long enough to match. Many calls never do: a path, a number or a switch is too
//! short. So the letters and digits of a text are stored, and the first lookup takes the fingerprints of all
//! deferred texts. Texts that were evicted before cost no more than a copy.

use std::collections::VecDeque;

use super::argument_grams::ArgumentGrams;
use super::ngrams::{self, NGramHasher, STRIDE};
use super::table::{FingerprintTable, SourceId};

/// The largest number of deferred texts, because each takes some memory beside its own. Beyond it the
/// fingerprints of all of them are taken, which is fast for short texts.
const MAX_DEFERRED: usize = 64;

/// A buffer of up to this size, enough for most answers, is kept for the next text; a larger one is freed.
const MAX_SPARE_BYTES: usize = 4096;

/// A text is deferred if the call's fingerprints take at most one byte for this many bytes of the text.
const MAX_ARGUMENT_SHARE: usize = 4;

/// The memory of a scope.
pub(super) struct ScopeMemory {
    table: FingerprintTable,
    /// The oldest first.
    deferred: VecDeque<DeferredText>,
    /// Their size in memory.
    bytes: usize,
    /// As many letters and digits as the table has fingerprints of. So a text that newer ones evict from here
    /// would hardly be in the table any more if its fingerprints had been taken at once.
    max_bytes: usize,
    spare: Vec<u8>,
}

/// A deferred text.
#[derive(PartialEq)]
struct DeferredText {
    letters: Vec<u8>,
    source: SourceId,
    argument_grams: ArgumentGrams,
}

impl ScopeMemory {
    pub(super) fn new(fingerprints: usize) -> Self {
        Self {
            table: FingerprintTable::new(fingerprints),
            deferred: VecDeque::new(),
            bytes: 0,
            max_bytes: fingerprints.saturating_mul(STRIDE),
            spare: Vec::new(),
        }
    }

    /// Remembers what a plugin answered, except for what the call contained. If the text is too large to be
    /// deferred, the caller has to take its fingerprints and [insert](Self::insert) them for the returned
    /// plugin.
    #[must_use]
    pub(super) fn defer(
        &mut self,
        grams: &NGramHasher,
        plugin: &str,
        text: &str,
        own: &ArgumentGrams,
    ) -> Option<SourceId> {
        let source = self.table.source(plugin);
        if text.len() > self.max_bytes || own.bytes() > text.len() / MAX_ARGUMENT_SHARE {
            // First the older texts, to keep the order.
            self.index_all(grams);
            return Some(source);
        }
        let letters = self.letters(text);
        let text = DeferredText { letters, source, argument_grams: own.clone() };
        // Repeated text takes no more space, as in the table.
        if let Some(known) = self.deferred.iter().position(|waiting| *waiting == text) {
            self.deferred.remove(known);
            self.bytes -= text.bytes();
        }
        self.make_room(grams, source, text.bytes());
        self.bytes += text.bytes();
        self.deferred.push_back(text);
        None
    }

    /// Stores fingerprints of a plugin's answer.
    pub(super) fn insert(&mut self, fingerprints: &[u64], source: SourceId) {
        self.table.insert(fingerprints, source);
    }

    /// Stores the fingerprints of the rare values in a plugin's answer. They are few, so that they are never
    /// deferred.
    pub(super) fn insert_values(&mut self, fingerprints: &[u64], plugin: &str) {
        let source = self.table.source(plugin);
        self.table.insert(fingerprints, source);
    }

    /// Adds the plugins with these fingerprints of values to `found`, each once. The deferred texts stay so.
    pub(super) fn sources_of_values(&self, fingerprints: &[u64], found: &mut Vec<SourceId>) {
        self.table.sources_of(fingerprints, found);
    }

    /// Adds the plugins with these fingerprints to `found`, each once.
    pub(super) fn sources_of(
        &mut self,
        grams: &NGramHasher,
        fingerprints: &[u64],
        found: &mut Vec<SourceId>,
    ) {
        self.index_all(grams);
        self.table.sources_of(fingerprints, found);
    }

    pub(super) fn name(&self, source: SourceId) -> &str {
        self.table.name(source)
    }

    fn letters(&mut self, text: &str) -> Vec<u8> {
        let mut letters = std::mem::take(&mut self.spare);
        letters.clear();
        if letters.capacity() < text.len() {
            letters = Vec::with_capacity(text.len());
        }
        ngrams::normalize(text, &mut letters);
        // The text was mostly spaces, or shorter than the one before.
        if letters.capacity() / 2 > letters.len() {
            letters.shrink_to_fit();
        }
        letters
    }

    /// Makes room for this many more bytes of a plugin. A plugin that has half of the deferred bytes loses
    /// its own oldest text, as in the table; otherwise the oldest text is inserted into the table.
    fn make_room(&mut self, grams: &NGramHasher, source: SourceId, bytes: usize) {
        if self.deferred.len() >= MAX_DEFERRED {
            self.index_all(grams);
        }
        while self.bytes + bytes > self.max_bytes {
            let own = self.deferred.iter().filter(|text| text.source == source);
            let has_its_share = own.map(DeferredText::bytes).sum::<usize>() >= self.bytes.div_ceil(2);
            let oldest_own = self.deferred.iter().position(|text| text.source == source);
            let place = oldest_own.filter(|_| has_its_share).unwrap_or(0);
            let Some(oldest) = self.deferred.remove(place) else { return };
            self.bytes -= oldest.bytes();
            if !has_its_share {
                oldest.index(&mut self.table, grams);
            }
        }
    }

    fn index_all(&mut self, grams: &NGramHasher) {
        for text in self.deferred.drain(..) {
            text.index(&mut self.table, grams);
            if text.letters.capacity() <= MAX_SPARE_BYTES {
                self.spare = text.letters;
            }
        }
        self.bytes = 0;
    }
}

impl DeferredText {
    fn bytes(&self) -> usize {
        self.letters.len() + self.argument_grams.bytes()
    }

    fn index(&self, table: &mut FingerprintTable, grams: &NGramHasher) {
        let own = self.argument_grams.filter();
        grams.hash_normalized(&self.letters, |some| table.insert(own.exclude(some), self.source));
    }
}

#[cfg(test)]
mod tests;
