//! Foreign texts in reports: short, in one line.

use super::limits::SHOWN_CHARS;

/// The beginning of a text in one line. What controls a terminal is left to whoever prints it; line ends and the like
/// are taken out here already, since a report is one line.
pub(super) fn shown(text: &str) -> String {
    shown_within(text, SHOWN_CHARS)
}

/// The same, so many characters of it.
pub(super) fn shown_within(text: &str, limit: usize) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut short: String = chars.by_ref().take(limit).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}
