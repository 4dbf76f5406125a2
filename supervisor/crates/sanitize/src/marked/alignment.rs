//! Where a sanitized line differs from the line that it was made of.

use std::ops::Range;

use crate::colours;
use crate::escape::MARK;
use crate::note;

/// A place where the two lines differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) clean: Range<usize>,
    pub(super) raw: Range<usize>,
}

/// The changes of one line.
#[derive(Debug, Default)]
pub(super) struct Alignment(Vec<Change>);

impl Alignment {
    /// Aligns two lines. `None` if one is not what sanitizing makes of the other by marks, notes and removed
    /// colours alone: an operator's pattern replaced something.
    pub(super) fn of(raw: &str, clean: &str) -> Option<Self> {
        let mut changes = Vec::new();
        let (mut at_raw, mut at_clean) = (0, 0);
        loop {
            let (from, to) = (raw[at_raw..].chars().next(), clean[at_clean..].chars().next());
            // Colours are removed before anything else.
            let colour = colours::sequence_bytes(&raw[at_raw..]);
            let (removed, added) = match (from, to) {
                (None, None) => return Some(Self(changes)),
                (Some(same), Some(other)) if same == other => {
                    at_raw += same.len_utf8();
                    at_clean += same.len_utf8();
                    continue;
                }
                _ if colour.is_some() => (colour.unwrap_or_default(), 0),
                (_, Some(MARK)) => (0, MARK.len_utf8()),
                (Some(first), Some(_)) => {
                    let note = note::parse(&clean[at_clean..]).filter(|note| note.first == first)?;
                    (replaced_bytes(&raw[at_raw..], note.count), note.bytes)
                }
                (Some(_), None) | (None, Some(_)) => return None,
            };
            changes.push(Change { clean: at_clean..at_clean + added, raw: at_raw..at_raw + removed });
            at_raw += removed;
            at_clean += added;
        }
    }

    /// The changes that can be seen in the sanitized line: all but removed colours.
    pub(super) fn visible(&self) -> impl Iterator<Item = &Change> {
        self.0.iter().filter(|change| !change.clean.is_empty())
    }

    /// The same range of the original. `None` if it begins or ends inside a note.
    pub(super) fn raw_range(&self, clean: Range<usize>) -> Option<Range<usize>> {
        // Colours at either end stay outside.
        let start = self.raw_offset(clean.start, true)?;
        let end = self.raw_offset(clean.end, false)?;
        (start <= end).then_some(start..end)
    }

    fn raw_offset(&self, at: usize, behind_colours: bool) -> Option<usize> {
        let (mut raw, mut clean) = (0, 0);
        for change in &self.0 {
            let is_here = change.clean.start >= at;
            if is_here && !(behind_colours && change.clean.end == at) {
                break;
            }
            if change.clean.end > at {
                return None;
            }
            (raw, clean) = (change.raw.end, change.clean.end);
        }
        Some(raw + (at - clean))
    }
}

/// The length of this many characters, with the colours between them.
fn replaced_bytes(raw: &str, count: usize) -> usize {
    let mut bytes = 0;
    for _ in 0..count {
        while let Some(colour) = colours::sequence_bytes(&raw[bytes..]) {
            bytes += colour;
        }
        bytes += raw[bytes..].chars().next().map_or(0, char::len_utf8);
    }
    bytes
}
