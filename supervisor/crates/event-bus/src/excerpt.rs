//! The beginning of a long text.

/// How much of a text an event carries: 2 KiB. Events are in memory, and whoever needs all of a text reads it where it is kept.
pub const MAX_TEXT_BYTES: usize = 2 << 10;

/// The text as an event carries it, and how many bytes are left out at its end.
#[must_use]
pub fn excerpt(text: &str) -> (String, u64) {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    (text[..end].to_owned(), (text.len() - end) as u64)
}
