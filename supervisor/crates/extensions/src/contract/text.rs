//! Texts of answers, within their bounds.

/// At most so many characters of a text, and `…` if there are more.
pub(super) fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
