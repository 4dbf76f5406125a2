//! Applies the edits to the original: marks are inserted, invisible and control characters become notes. No
//! visible character is removed.

use std::fmt::Write as _;

use crate::edit::{Edit, EditKind};
use crate::family_counts::{FamilyCounts, FindingKind};

/// The mark that neutralizes an opener.
///
/// A middle dot: visible, no white space, no letter, digit, mark or connector to Unicode, unchanged by every
/// normalisation form and by case folding, with no ASCII look-alike, and in need of no escape in JSON, HTML,
/// YAML or a shell. No shape tolerates it behind its opener.
pub(crate) const MARK: char = '·';

/// What sanitizing writes itself; an operator's patterns must not match it.
pub(crate) fn sanitizer_output() -> [String; 6] {
    let note = |first, count| {
        let mut out = String::new();
        write_note(&mut out, first, count);
        out
    };
    [
        MARK.to_string(),
        note('\u{200b}', 1),
        note('\u{e0041}', 12),
        note('\u{1b}', 1),
        note('\u{9b}', 1),
        note('\u{7f}', 1),
    ]
}

/// The text with the edits applied.
pub(crate) fn apply(text: &str, edits: &[Edit], tally: &mut FamilyCounts) -> String {
    let mut out = String::with_capacity(text.len() + edits.len() * 8);
    let mut from = 0;
    for edit in edits {
        // A mark that belongs inside a run of invisible characters goes behind the note of the run.
        let at = edit.at.max(from);
        out.push_str(&text[from..at]);
        from = at;
        match edit.kind {
            EditKind::Mark(family, kind) => {
                out.push(MARK);
                tally.add(family, kind);
            }
            EditKind::Note { first, count, end, family } => {
                write_note(&mut out, first, count);
                tally.add(family, FindingKind::Character(first));
                from = end;
            }
        }
    }
    out.push_str(&text[from..]);
    out
}

/// C0 controls become their pictures (`␛`), which are short and clear; others are shown by code
/// point, a run of invisible ones by its first and its length: `(U+200B)`, `(U+E0041 ×12)`.
pub(crate) fn write_note(out: &mut String, first: char, count: usize) {
    let code = u32::from(first);
    let picture = match code {
        0..=0x1f => char::from_u32(0x2400 + code),
        0x7f => Some('␡'),
        _ => None,
    };
    let written = match (picture, count) {
        (Some(picture), _) => out.write_char(picture),
        (None, 1) => write!(out, "(U+{code:04X})"),
        (None, _) => write!(out, "(U+{code:04X} ×{count})"),
    };
    // Writing to a string cannot fail.
    debug_assert!(written.is_ok());
}
