//! What marked pieces of a sanitized text were before.
//!
//! Marks protect a model, and a file should not have them: what a model copies from a sanitized text into
//! another one can be given its original back. A span is a piece of one line, long enough to be recognized: a
//! word with a mark in it, and also the whole line if it is short. Where the same piece stands for several
//! originals, all of them are listed, and the reader sees that it is ambiguous.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::escape::MARK;
use crate::invisible::is_invisible;
use crate::{Sanitizer, note};

mod alignment;

use alignment::Alignment;

/// How far a span reaches before a mark, within its word: a name and its namespace.
const MAX_BEFORE_BYTES: usize = 32;
/// How far it reaches behind a mark.
const MAX_BEHIND_BYTES: usize = 64;
/// The shortest span besides its mark: `<·b` could be anything.
const MIN_SPAN_BYTES: usize = 3;
/// Longer lines are not listed whole, which only helps where their words are ambiguous.
const MAX_LINE_BYTES: usize = 256;

/// A marked piece of a text, and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MarkedSpan {
    /// As it is in the sanitized text.
    pub marked: String,
    /// As it was.
    pub original: String,
}

impl MarkedSpan {
    fn bytes(&self) -> usize {
        self.marked.len() + self.original.len()
    }
}

/// The marked spans of an answer, up to a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkedSpans {
    spans: BTreeSet<MarkedSpan>,
    bytes: usize,
    left_out: usize,
}

impl MarkedSpans {
    /// The largest size of the spans of one answer, over both of their texts: a thousand of the usual size.
    /// Not configurable. What is over it is counted by [`Self::left_out`] and stays marked.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Adds the spans of a text and of what the sanitizer made of it.
    pub fn add_text(&mut self, raw: &str, sanitized: &str) {
        // What has marks of its own is listed, too: it stands for itself.
        if raw == sanitized && !has_marks(sanitized) {
            return;
        }
        let (originals, lines): (Vec<&str>, Vec<&str>) =
            (raw.split('\n').collect(), sanitized.split('\n').collect());
        if originals.len() != lines.len() {
            self.left_out += 1;
            return;
        }
        let mut found = BTreeSet::new();
        let mut aligned = Vec::new();
        for (original, line) in originals.into_iter().zip(lines) {
            match Alignment::of(original, line) {
                Some(alignment) => {
                    found.extend(spans_of_line(original, line, &alignment));
                    if has_marks(line) {
                        aligned.push((original, line, alignment));
                    }
                }
                None => self.left_out += 1,
            }
        }
        // The same piece elsewhere, where it may have had no mark or another original.
        let marked: BTreeSet<String> = found.iter().map(|span| span.marked.clone()).collect();
        for (original, line, alignment) in &aligned {
            for piece in &marked {
                for (at, _) in line.match_indices(piece.as_str()) {
                    let Some(range) = alignment.raw_range(at..at + piece.len()) else { continue };
                    found.insert(MarkedSpan { marked: piece.clone(), original: original[range].to_owned() });
                }
            }
        }
        found.into_iter().for_each(|span| self.insert(span));
    }

    /// The same for JSON texts: the spans of their strings, decoded. Text that is no JSON has none.
    pub fn add_json(&mut self, raw: &str, sanitized: &str) {
        if raw == sanitized && !has_marks(sanitized) {
            return;
        }
        match (serde_json::from_str(raw), serde_json::from_str(sanitized)) {
            (Ok(raw), Ok(sanitized)) => self.add_values(&raw, &sanitized),
            _ => self.left_out += 1,
        }
    }

    fn add_values(&mut self, raw: &Value, sanitized: &Value) {
        match (raw, sanitized) {
            (Value::String(raw), Value::String(sanitized)) => self.add_text(raw, sanitized),
            (Value::Array(raw), Value::Array(sanitized)) => {
                raw.iter().zip(sanitized).for_each(|(raw, sanitized)| self.add_values(raw, sanitized));
            }
            (Value::Object(raw), Value::Object(sanitized)) => {
                // A marked key may sort elsewhere, so equal keys belong together first.
                for (key, value) in raw {
                    if let Some(sanitized) = sanitized.get(key) {
                        self.add_values(value, sanitized);
                    }
                }
                let changed = raw.iter().filter(|(key, _)| !sanitized.contains_key(*key));
                let marked = sanitized.iter().filter(|(key, _)| !raw.contains_key(*key));
                for ((key, value), (marked_key, sanitized)) in changed.zip(marked) {
                    self.add_text(key, marked_key);
                    self.add_values(value, sanitized);
                }
            }
            _ => {}
        }
    }

    fn insert(&mut self, span: MarkedSpan) {
        if self.spans.contains(&span) {
            return;
        }
        if self.bytes + span.bytes() > Self::MAX_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += span.bytes();
        self.spans.insert(span);
    }

    /// The spans, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &MarkedSpan> {
        self.spans.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many spans and texts are not listed: over [`Self::MAX_BYTES`], or replaced by an operator's pattern.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl IntoIterator for MarkedSpans {
    type Item = MarkedSpan;
    type IntoIter = std::collections::btree_set::IntoIter<MarkedSpan>;
    fn into_iter(self) -> Self::IntoIter {
        self.spans.into_iter()
    }
}

/// Whether a text may have marks or notes in it.
#[must_use]
pub fn has_marks(text: &str) -> bool {
    text.contains(MARK) || text.contains("(U+") || text.contains(|c| matches!(c, '\u{2400}'..='\u{2421}'))
}

/// How many marks and notes of the sanitizer a text has: a `·` without which control syntax would appear, and
/// a note of an invisible or control character.
#[must_use]
pub fn count_marks(text: &str) -> usize {
    marks(text).len()
}

/// Where the marks and notes of a text are.
fn marks(text: &str) -> Vec<Range<usize>> {
    if !has_marks(text) {
        return Vec::new();
    }
    let sanitizer = Sanitizer::default();
    let mark = |at: usize| {
        let range = at..at + MARK.len_utf8();
        let word = word_around(text, range.clone());
        let without = [&text[word.start..at], &text[range.end..word.end]].concat();
        (!sanitizer.is_clean(&without)).then_some(range)
    };
    let note = |at: usize| {
        let note = note::parse(&text[at..])?;
        (is_invisible(note.first) || note.first.is_control()).then_some(at..at + note.bytes)
    };
    let found = text.char_indices().filter_map(|(at, c)| match c {
        MARK => mark(at),
        '(' | '\u{2400}'..='\u{2421}' => note(at),
        _ => None,
    });
    found.collect()
}

fn spans_of_line(raw: &str, clean: &str, alignment: &Alignment) -> Vec<MarkedSpan> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut places: Vec<Range<usize>> = alignment.visible().map(|change| change.clean.clone()).collect();
    // The text's own marks.
    places.extend(marks(clean));
    places.sort_by_key(|place| (place.start, place.end));
    places.dedup();
    for place in places {
        let mut word = word_around(clean, place.clone());
        match ranges.last_mut() {
            Some(last) if last.end > word.start => last.end = last.end.max(word.end),
            _ => {
                word.end = word.end.max(place.end);
                ranges.push(word);
            }
        }
    }
    if !ranges.is_empty() && clean.len() <= MAX_LINE_BYTES {
        ranges.push(0..clean.len());
    }
    let spans = ranges.into_iter().filter_map(|range| {
        let marked = &clean[range.clone()];
        if marked.len() < MIN_SPAN_BYTES + MARK.len_utf8() {
            return None;
        }
        let original = raw[alignment.raw_range(range)?].to_owned();
        Some(MarkedSpan { marked: marked.to_owned(), original })
    });
    spans.collect()
}

/// The word around a range, within the limits of a span. A word that is only a mark takes its neighbour too.
fn word_around(text: &str, range: Range<usize>) -> Range<usize> {
    let from = text.floor_char_boundary(range.start.saturating_sub(MAX_BEFORE_BYTES));
    let to = text.floor_char_boundary((range.end + MAX_BEHIND_BYTES).min(text.len()));
    let space = |(at, c): (usize, char)| c.is_whitespace().then_some((at, c.len_utf8()));
    let before = &text[from..range.start];
    let start = before.char_indices().rev().find_map(space).map_or(from, |(at, bytes)| from + at + bytes);
    let behind = &text[range.end..to];
    // Some shapes have a space right behind their opener.
    let skipped = behind.len() - behind.trim_start().len();
    let end = behind[skipped..].char_indices().find_map(space).map_or(to, |(at, _)| range.end + skipped + at);
    start..end
}

#[cfg(test)]
#[path = "marked_tests.rs"]
mod tests;
