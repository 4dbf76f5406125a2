//! Excerpts of foreign texts for reports: short, in one line.

use super::limits::EXCERPT_CHARS;

/// The beginning of a text in one line. The program that prints it has to escape terminal control characters;
/// line breaks and the like are removed here already, since a report is one line.
pub(super) fn excerpt(text: &str) -> String {
    excerpt_within(text, EXCERPT_CHARS)
}

/// The same, with this many characters.
pub(super) fn excerpt_within(text: &str, limit: usize) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut short: String = chars.by_ref().take(limit).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}
