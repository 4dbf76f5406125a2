//! The piece of a text that is sent: redacted, in printable characters, at most 2 KiB.

use talon_redact::{redact, redact_keeping_lines};

use crate::limits::{EXCERPT_BYTES, READ_BYTES};

/// A piece of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// What is missing of the part that was asked for.
    pub(crate) left_out: u64,
    /// How many secrets were replaced.
    pub(crate) redactions: u32,
}

impl Excerpt {
    /// The beginning of a text.
    pub(crate) fn of(text: &str) -> Self {
        // Redacted before it is cut: half a secret would not be told. The bound keeps the work small.
        let bounded = &text[..text.floor_char_boundary(READ_BYTES)];
        let redacted = redact(bounded);
        let printable = printable(&redacted.text);
        let end = printable.floor_char_boundary(EXCERPT_BYTES);
        let unread = text.len() - bounded.len();
        Self {
            text: printable[..end].to_owned(),
            left_out: u64::try_from(printable.len() - end + unread).unwrap_or(u64::MAX),
            redactions: redacted.count,
        }
    }

    /// The lines around `line` (from 1), up to `around` of them on both sides. The whole text is redacted, so
    /// that a secret of several lines is told.
    pub(crate) fn around(text: &str, line: usize, around: usize) -> Self {
        let bounded = &text[..text.floor_char_boundary(READ_BYTES)];
        let first = line.saturating_sub(around).max(1);
        let count = line.saturating_add(around) - first + 1;
        // Secrets keep their line breaks, so that line numbers stay what they are.
        let redacted = redact_keeping_lines(bounded);
        let wanted: Vec<&str> = redacted.text.lines().skip(first - 1).take(count).collect();
        let mut excerpt = Self::of(&wanted.join("\n"));
        excerpt.redactions = excerpt.redactions.saturating_add(redacted.count);
        excerpt
    }
}

/// Without what acts on a terminal; line breaks and tabs stay.
fn printable(text: &str) -> String {
    talon_sanitize::Raw::from(text).terminal_text().into_string()
}

/// One line of at most [`LINE_BYTES`](crate::limits::LINE_BYTES), redacted; with the number of secrets.
pub(crate) fn line(text: &str) -> (String, u32) {
    let bounded = &text[..text.floor_char_boundary(READ_BYTES)];
    let redacted = redact(bounded);
    let line = talon_sanitize::Raw::from(redacted.text.as_str()).terminal_line().into_string();
    let ellipsis = '…';
    if line.len() <= crate::limits::LINE_BYTES {
        return (line, redacted.count);
    }
    let end = line.floor_char_boundary(crate::limits::LINE_BYTES - ellipsis.len_utf8());
    (format!("{}{ellipsis}", &line[..end]), redacted.count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: SHADOW-52
    #[test]
    fn an_excerpt_is_bounded_printable_and_counts_what_is_missing() {
        let text = "ä".repeat(3000);
        let excerpt = Excerpt::of(&text);
        assert_eq!(excerpt.text.len() as u64 + excerpt.left_out, 6000);
        assert!(excerpt.text.len() <= EXCERPT_BYTES);
        assert!(!Excerpt::of("a\u{1b}[2Jb").text.contains('\u{1b}'));
        let lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
        assert_eq!(Excerpt::around(&lines.join("\n"), 10, 1).text, "line 9\nline 10\nline 11");
        assert_eq!(Excerpt::around(&lines.join("\n"), 1, 1).text, "line 1\nline 2");
    }

    // Promises: SHADOW-50
    #[test]
    fn lines_beside_a_secret_of_several_lines_are_found() {
        let key = format!("-----BEGIN {0}-----\nabc\ndef\n-----END {0}-----", "PRIVATE KEY");
        let excerpt = Excerpt::around(&format!("one\n{key}\nsix\nseven"), 7, 1);
        assert_eq!(excerpt.text, "six\nseven");
        assert!(!Excerpt::around(&format!("one\n{key}\nsix"), 3, 3).text.contains("abc"));
    }

    proptest! {
        // Promises: SHADOW-52
        #[test]
        fn every_excerpt_is_bounded(text in "(?s).{0,4000}", line_number in 1usize..50) {
            for excerpt in [Excerpt::of(&text), Excerpt::around(&text, line_number, 5)] {
                prop_assert!(excerpt.text.len() <= EXCERPT_BYTES);
                let has_escape = excerpt.text.contains('\u{1b}');
                prop_assert!(!has_escape);
            }
            let (line, _) = line(&text);
            prop_assert!(line.len() <= crate::limits::LINE_BYTES && !line.contains('\n'));
        }
    }
}
