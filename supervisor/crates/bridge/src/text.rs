//! Texts of the translated program, cut for messages and logs.

use std::fmt::Write as _;

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

/// An error with its causes, without repetitions, as one line of at most [`MAX_ERROR_TEXT_BYTES`] and the
/// mark of a cut.
#[must_use]
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let shown = deeper.to_string();
        // Some errors include their source in their own text.
        if !text.contains(&shown) {
            let _ = write!(text, ": {shown}");
        }
        if text.len() > MAX_ERROR_TEXT_BYTES {
            break;
        }
        cause = deeper.source();
    }
    cut(&text, MAX_ERROR_TEXT_BYTES)
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

    #[test]
    fn a_cause_that_the_error_repeats_stands_once() {
        #[derive(Debug)]
        struct Outer(std::io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "it fails: {}", self.0)
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.0)
            }
        }
        assert_eq!(error_chain(&Outer(std::io::Error::other("gone"))), "it fails: gone");
        let long = error_chain(&Outer(std::io::Error::other("x".repeat(5000))));
        assert!(long.len() <= MAX_ERROR_TEXT_BYTES + "…".len(), "{}", long.len());
    }
}
