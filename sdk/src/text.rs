//! Cutting text for messages that must stay small.

/// The prefix of `text` that is at most `max_bytes` long and ends at a character boundary.
pub(crate) fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// Like [`cut`], with `…` where something is missing.
pub(crate) fn shorten(text: &str, max_bytes: usize) -> String {
    let kept = cut(text, max_bytes);
    if kept.len() == text.len() { kept.to_owned() } else { format!("{kept}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("añb", 2), "a");
        assert_eq!(cut("añb", 3), "añ");
        assert_eq!(cut("abc", 9), "abc");
        assert_eq!(shorten("abcdef", 3), "abc…");
        assert_eq!(shorten("abc", 3), "abc");
    }
}
