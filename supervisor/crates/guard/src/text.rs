//! Names from outside, formatted for a message or a log line.

use std::fmt::{self, Write as _};

/// Names are at most 64 characters by contract; a longer one is shortened.
const MAX_SHOWN_CHARS: usize = 64;

/// Shows a name in quotes, with control characters escaped and at most [`MAX_SHOWN_CHARS`] of it, so that a
/// caller's text can neither flood nor forge a line.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(MAX_SHOWN_CHARS) {
            write!(f, "{}", c.escape_debug())?;
        }
        if chars.next().is_some() {
            f.write_char('…')?;
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_stay_on_their_line_and_short() {
        assert_eq!(Quoted("a\nb\u{1b}[2J").to_string(), r#""a\nb\u{1b}[2J""#);
        assert!(Quoted(&"x".repeat(10_000)).to_string().len() < 80);
    }
}
