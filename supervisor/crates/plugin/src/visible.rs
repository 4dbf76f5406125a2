//! Control characters made visible, so that no plugin can move the cursor of whoever reads its log.
//!
//! This is not the guard's sanitizer, which this crate does not link: it is about terminals and log files, and
//! leaves words alone.

use std::fmt::Write;

/// Whether a character acts on a terminal or on the order of text instead of being seen.
fn acts(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c,
            // Direction: marks, embeddings, overrides, isolates.
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line ends that are no newline, and a byte order mark.
            | '\u{2028}' | '\u{2029}' | '\u{feff}'
            // Invisible tags.
            | '\u{e0000}'..='\u{e007f}')
}

/// The text with such characters written as `\u{1b}`, cut at a character when it grows beyond `max_bytes`.
pub(crate) fn visible(text: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_bytes));
    for c in text.chars() {
        let before = out.len();
        if acts(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
        if out.len() > max_bytes {
            out.truncate(before);
            out.push('…');
            break;
        }
    }
    out
}
