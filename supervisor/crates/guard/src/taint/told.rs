//! What went out to one scope: fingerprints, and texts of which nobody has asked for any yet.
//!
//! To take the fingerprints of a large answer is the dearest thing that is done to it, and is of use only once a call brings
//! a piece that could be of it. Many never do: a path, a number or a switch is too short. So of a text the letters and digits
//! wait, and the first call that asks has the fingerprints of all that waits taken. What was pushed out before costs no more
//! than a copy.

use std::collections::VecDeque;

use super::grams::{self, Grams, STRIDE};
use super::own::Own;
use super::table::{Source, Table};

/// So many texts wait at the most, because each takes some memory beside its own; then the fingerprints of all of them are
/// taken, which for short texts is soon done.
const MAX_WAITING: usize = 64;

/// Memory of so many bytes, enough for most answers, is kept for the next text; more is given back.
const SPARE: usize = 4096;

/// A text waits if what the call had brought takes no more than one of so many bytes beside it.
const OWN_SHARE: usize = 4;

/// What is remembered of a scope.
pub(super) struct Told {
    table: Table,
    /// The oldest first.
    waiting: VecDeque<Text>,
    /// What they take together.
    bytes: usize,
    /// As many letters and digits as the table has fingerprints of. So what newer texts push out of here would hardly be in
    /// the table any more, had its fingerprints been taken at once.
    max_bytes: usize,
    spare: Vec<u8>,
}

/// One that waits.
#[derive(PartialEq)]
struct Text {
    letters: Vec<u8>,
    source: Source,
    own: Own,
}

impl Told {
    pub(super) fn new(fingerprints: usize) -> Self {
        Self {
            table: Table::new(fingerprints),
            waiting: VecDeque::new(),
            bytes: 0,
            max_bytes: fingerprints.saturating_mul(STRIDE),
            spare: Vec::new(),
        }
    }

    /// Remembers what a plugin said, except for what the call had brought. If it is too much to wait, the caller has to take
    /// its fingerprints, and [insert](Self::insert) them for the plugin that it is told.
    #[must_use]
    pub(super) fn put_off(&mut self, grams: &Grams, plugin: &str, text: &str, own: &Own) -> Option<Source> {
        let source = self.table.source(plugin);
        if text.len() > self.max_bytes || own.bytes() > text.len() / OWN_SHARE {
            // In the order in which they were said.
            self.take_in_all(grams);
            return Some(source);
        }
        let letters = self.letters(text);
        let text = Text { letters, source, own: own.clone() };
        // What is said again takes no more room, as in the table.
        if let Some(known) = self.waiting.iter().position(|waiting| *waiting == text) {
            self.waiting.remove(known);
            self.bytes -= text.bytes();
        }
        self.make_room(grams, source, text.bytes());
        self.bytes += text.bytes();
        self.waiting.push_back(text);
        None
    }

    /// Remembers fingerprints of what a plugin said.
    pub(super) fn insert(&mut self, fingerprints: &[u64], source: Source) {
        self.table.insert(fingerprints, source);
    }

    /// Adds to `found` who said these, each once.
    pub(super) fn sources_of(&mut self, grams: &Grams, fingerprints: &[u64], found: &mut Vec<Source>) {
        self.take_in_all(grams);
        self.table.sources_of(fingerprints, found);
    }

    pub(super) fn name(&self, source: Source) -> &str {
        self.table.name(source)
    }

    fn letters(&mut self, text: &str) -> Vec<u8> {
        let mut letters = std::mem::take(&mut self.spare);
        letters.clear();
        if letters.capacity() < text.len() {
            letters = Vec::with_capacity(text.len());
        }
        grams::letters_of(text, &mut letters);
        // Mostly spaces, or shorter than the one before.
        if letters.capacity() / 2 > letters.len() {
            letters.shrink_to_fit();
        }
        letters
    }

    /// Makes room for so many more bytes of a plugin. One that has half of what waits pushes out its own, as it does in the
    /// table; else the oldest is taken in.
    fn make_room(&mut self, grams: &Grams, source: Source, bytes: usize) {
        if self.waiting.len() >= MAX_WAITING {
            self.take_in_all(grams);
        }
        while self.bytes + bytes > self.max_bytes {
            let own = self.waiting.iter().filter(|text| text.source == source);
            let has_its_share = own.map(Text::bytes).sum::<usize>() >= self.bytes.div_ceil(2);
            let oldest_own = self.waiting.iter().position(|text| text.source == source);
            let place = oldest_own.filter(|_| has_its_share).unwrap_or(0);
            let Some(oldest) = self.waiting.remove(place) else { return };
            self.bytes -= oldest.bytes();
            if !has_its_share {
                oldest.take_in(&mut self.table, grams);
            }
        }
    }

    fn take_in_all(&mut self, grams: &Grams) {
        for text in self.waiting.drain(..) {
            text.take_in(&mut self.table, grams);
            if text.letters.capacity() <= SPARE {
                self.spare = text.letters;
            }
        }
        self.bytes = 0;
    }
}

impl Text {
    fn bytes(&self) -> usize {
        self.letters.len() + self.own.bytes()
    }

    fn take_in(&self, table: &mut Table, grams: &Grams) {
        let own = self.own.seen();
        grams.of_letters(&self.letters, |some| table.insert(own.without(some), self.source));
    }
}

#[cfg(test)]
mod tests;
