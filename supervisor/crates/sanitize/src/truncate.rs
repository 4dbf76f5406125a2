//! Cuts texts at character boundaries.

use std::borrow::Cow;

/// The longest prefix of `text` that has at most `max_bytes` bytes and ends between two characters.
#[must_use]
pub fn prefix(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// The same, followed by `ellipsis` if something is missing. The ellipsis is not counted.
///
/// ```
/// assert_eq!(talon_sanitize::truncate("año nuevo", 2, "…"), "a…");
/// assert_eq!(talon_sanitize::truncate("año", 4, "…"), "año");
/// ```
#[must_use]
pub fn truncate<'t>(text: &'t str, max_bytes: usize, ellipsis: &str) -> Cow<'t, str> {
    match prefix(text, max_bytes) {
        whole if whole.len() == text.len() => Cow::Borrowed(text),
        start => Cow::Owned([start, ellipsis].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_never_splits_a_character() {
        assert_eq!(prefix("abcdä", 5), "abcd");
        assert_eq!(prefix("abc", 99), "abc");
    }
}
