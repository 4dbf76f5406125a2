//! What marked pieces of tools' results were before, and how a model's arguments get them back.
//!
//! Marks protect a model, and a file should not have them. A model that reads a file and writes it back
//! copies them, so in arguments for plugins each known piece is replaced by its original: exactly, and only
//! if it has one original in this session. Anything else stays as the model wrote it, and is counted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use talon_sanitize::{MarkedSpan, count_marks, has_marks};

/// The largest size of the spans of a session: those of dozens of files full of marks. Further ones are not
/// known, so that their marks stay, with a notice. Not configurable.
const MAX_BYTES: usize = 4 << 20;
/// The largest size of the spans that go with a sub-agent's answer into the outer turn: as much as the supervisor
/// sends with a result. Those beyond it stay marked there, with a notice. Not configurable.
const MAX_REPEATED_BYTES: usize = 64 << 10;

/// The originals of a session, by their marked form. `None`: there are several.
#[derive(Debug, Default)]
pub struct Originals {
    spans: BTreeMap<String, Option<String>>,
    bytes: usize,
    /// Matches those with one original; built when it is needed.
    matcher: Option<AhoCorasick>,
}

/// What became of arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// How many pieces got their original.
    pub pieces: usize,
    /// How many marks stayed, because their original is not known or not certain.
    pub marks_left: usize,
}

impl Originals {
    /// Adds the spans of a result.
    pub fn add<'s>(&mut self, spans: impl IntoIterator<Item = &'s MarkedSpan>) {
        for MarkedSpan { marked, original } in spans {
            if let Some(known) = self.spans.get_mut(marked) {
                if known.as_ref().is_some_and(|known| known != original) {
                    *known = None;
                    self.matcher = None;
                }
                continue;
            }
            let bytes = marked.len() + original.len();
            if marked.is_empty() || self.bytes + bytes > MAX_BYTES {
                continue;
            }
            self.bytes += bytes;
            self.matcher = None;
            self.spans.insert(marked.clone(), Some(original.clone()));
        }
    }

    /// Gives the strings of a value their originals back. Keys stay as they are: they name what a tool
    /// declares.
    pub fn restore(&mut self, value: &mut Value, restored: &mut Restored) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(original) = self.restore_text(text, restored) {
                    *text = original;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.restore(item, restored)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.restore(value, restored)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The spans that a text repeats, which restore what is copied from it; of JSON, what its strings have.
    #[must_use]
    pub fn repeated_in(&self, text: &str) -> Vec<MarkedSpan> {
        if !has_marks(text) || self.spans.is_empty() {
            return Vec::new();
        }
        // One that lies in another counts, too: a part of the text may be copied.
        let Ok(matcher) = AhoCorasick::new(self.spans.keys()) else { return Vec::new() };
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        let mut found = BTreeSet::new();
        for text in strings(&value) {
            found.extend(matcher.find_overlapping_iter(text).map(|span| &text[span.range()]));
        }
        let mut repeated = Vec::new();
        let mut left = MAX_REPEATED_BYTES;
        for marked in found {
            let Some(original) = self.spans.get(marked) else { continue };
            // Two originals make it uncertain there as well.
            let originals = original.as_deref().map_or(vec![marked, ""], |original| vec![original]);
            let bytes = originals.iter().map(|original| marked.len() + original.len()).sum();
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
            repeated.extend(
                originals
                    .into_iter()
                    .map(|original| MarkedSpan { marked: marked.to_owned(), original: original.to_owned() }),
            );
        }
        repeated
    }

    fn restore_text<'t>(&mut self, text: &'t str, restored: &mut Restored) -> Cow<'t, str> {
        if !has_marks(text) {
            return Cow::Borrowed(text);
        }
        let mut out = String::new();
        let mut copied = 0;
        // The longest piece counts: a whole line is known better than a word of it.
        let matcher = self.matcher();
        for found in matcher.iter().flat_map(|matcher| matcher.find_iter(text)) {
            let marked = &text[found.range()];
            let Some(Some(original)) = self.spans.get(marked) else { continue };
            // A piece that stands for itself has no marks, though it looks like it.
            let before = &text[copied..found.start()];
            restored.marks_left += count_marks(before);
            restored.pieces += usize::from(marked != original);
            out.push_str(before);
            out.push_str(original);
            copied = found.end();
        }
        restored.marks_left += count_marks(&text[copied..]);
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    fn matcher(&mut self) -> Option<AhoCorasick> {
        if self.matcher.is_none() {
            let certain = self.spans.iter().filter(|(_, original)| original.is_some());
            let mut builder = AhoCorasick::builder();
            let builder = builder.match_kind(MatchKind::LeftmostLongest);
            self.matcher = builder.build(certain.map(|(marked, _)| marked)).ok();
        }
        self.matcher.clone()
    }
}

/// All strings of a value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[cfg(test)]
#[path = "originals_tests.rs"]
mod tests;
