//! Texts of the translated program, cut for messages and logs.

/// How much of the program's text an error repeats: a sentence or two with a path in it.
pub const MAX_ERROR_TEXT_BYTES: usize = 1024;
/// How much of it [`quoted`] shows: a name, or the beginning of a line.
const MAX_QUOTED_BYTES: usize = 100;

/// A text, with `…` at the end if it is cut.
#[must_use]
pub fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(max_bytes)])
}

/// The beginning of a text, quoted and on one line.
#[must_use]
pub fn quoted(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_QUOTED_BYTES);
    let mark = if end < text.len() { "…" } else { "" };
    format!("{:?}{mark}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_one_short_line() {
        assert_eq!(quoted("a\n\u{1b}[2J"), r#""a\n\u{1b}[2J""#);
        let long = quoted(&"ä".repeat(1000));
        assert!(long.len() < 120 && long.ends_with('…'), "{long}");
    }

    #[test]
    fn a_cut_is_marked_and_splits_no_character() {
        assert_eq!((cut("añb", 2), cut("añb", 4)), ("a…".to_owned(), "añb".to_owned()));
    }
}
