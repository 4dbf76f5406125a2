//! Limits the length of a server's texts.

use std::fmt::Write as _;

/// How much of a server's text an error repeats. Enough for a sentence or two with a path in it.
pub(crate) const MAX_SERVER_TEXT_BYTES: usize = 1024;

/// A server's text, cut if it is too long.
pub(crate) fn cut(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(max_bytes)])
}

/// An error with its causes, without repetitions, as one bounded line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let said = deeper.to_string();
        // Some errors include their source in their own text.
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        if text.len() > MAX_SERVER_TEXT_BYTES {
            break;
        }
        cause = deeper.source();
    }
    cut(&text, MAX_SERVER_TEXT_BYTES)
}
