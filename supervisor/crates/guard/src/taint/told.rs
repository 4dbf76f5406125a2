//! What went out to one scope: fingerprints, and the texts of which nobody has asked for any yet.
//!
//! To take the fingerprints of a large answer is the dearest thing that is done to it, and is of use only once a call brings
//! a piece that could be of it. Many never do: a path, a number or a switch is too short. So texts wait, and the first call
//! that asks has the fingerprints of all of them taken. What was pushed out while it waited costs no more than a copy.

use std::collections::VecDeque;

use super::grams::{Grams, STRIDE};
use super::own::Own;
use super::table::{Source, Table};

/// How many bytes of text may wait for each fingerprint that the table has room for: those of the [`STRIDE`] letters and
/// digits that one stands for, as prose has them (three in four characters). So what is pushed out of here by newer texts
/// would hardly be in the table any more, had its fingerprints been taken at once.
const BYTES_A_FINGERPRINT: usize = STRIDE * 4 / 3;

/// So many texts wait at the most, because each takes some memory beside its own; then the fingerprints of all of them are
/// taken, which for short texts is soon done.
const MAX_WAITING: usize = 64;

/// What is remembered of a scope.
pub(super) struct Told {
    table: Table,
    /// The oldest first.
    waiting: VecDeque<Text>,
    /// How long they are together.
    bytes: usize,
    max_bytes: usize,
    /// Memory of the text that waited last, for the next.
    spare: String,
}

/// One that waits.
struct Text {
    text: String,
    source: Source,
    own: Own,
}

impl Told {
    pub(super) fn new(fingerprints: usize) -> Self {
        Self {
            table: Table::new(fingerprints),
            waiting: VecDeque::new(),
            bytes: 0,
            spare: String::new(),
            max_bytes: fingerprints.saturating_mul(BYTES_A_FINGERPRINT),
        }
    }

    /// Remembers what a plugin said, except for what the call had brought.
    pub(super) fn remember(&mut self, grams: &Grams, plugin: &str, text: &str, own: &Own) {
        let source = self.table.source(plugin);
        if text.len() > self.max_bytes || !own.is_few() {
            self.take_in_all(grams);
            take_in(&mut self.table, grams, text, source, own);
            return;
        }
        self.make_room(grams, source, text.len());
        let mut copy = std::mem::take(&mut self.spare);
        // Memory for a much longer text is given back.
        if copy.capacity() / 2 > text.len() {
            copy = String::new();
        }
        copy.clear();
        copy.push_str(text);
        self.bytes += copy.len();
        self.waiting.push_back(Text { text: copy, source, own: own.clone() });
    }

    /// Adds to `found` who said these, each once.
    pub(super) fn sources_of(&mut self, grams: &Grams, looked_up: &[u64], found: &mut Vec<Source>) {
        self.take_in_all(grams);
        self.table.sources_of(looked_up, found);
    }

    pub(super) fn name(&self, source: Source) -> &str {
        self.table.name(source)
    }

    /// Makes room for so many more bytes of a plugin. One that has half of what waits pushes out its own, as it does in the
    /// table; else the oldest is taken in.
    fn make_room(&mut self, grams: &Grams, source: Source, bytes: usize) {
        if self.waiting.len() >= MAX_WAITING {
            self.take_in_all(grams);
        }
        while self.bytes + bytes > self.max_bytes {
            let own = self.waiting.iter().filter(|text| text.source == source);
            let has_its_share = own.map(|text| text.text.len()).sum::<usize>() >= self.bytes.div_ceil(2);
            let oldest_own = self.waiting.iter().position(|text| text.source == source);
            let place = oldest_own.filter(|_| has_its_share).unwrap_or(0);
            let Some(oldest) = self.waiting.remove(place) else { return };
            self.bytes -= oldest.text.len();
            if !has_its_share {
                take_in(&mut self.table, grams, &oldest.text, oldest.source, &oldest.own);
            }
            self.spare = oldest.text;
        }
    }

    fn take_in_all(&mut self, grams: &Grams) {
        for Text { text, source, own } in self.waiting.drain(..) {
            take_in(&mut self.table, grams, &text, source, &own);
            self.spare = text;
        }
        self.bytes = 0;
    }
}

/// Takes a text's fingerprints.
fn take_in(table: &mut Table, grams: &Grams, text: &str, source: Source, own: &Own) {
    let own = own.seen();
    grams.of_every_stride(text, |grams| table.insert(own.without(grams), source));
}

#[cfg(test)]
mod tests;
