//! The text in answers: without anything to sanitize, and without the same sentence twice in a row.

use std::io::Write as _;

/// The sentences have different lengths, so that no two parts of a text are alike.
const SENTENCES: [&str; 7] = [
    "The ferry leaves at ten past eight, and on Sundays a quarter of an hour later. ",
    "Bring a coat: the wind turns north by the afternoon. ",
    "Tickets are sold on board; children under six travel for nothing. ",
    "Whoever misses the last boat walks eleven kilometres around the bay. ",
    "In winter the line is closed, but for the post, which comes on Tuesdays and Fridays. ",
    "The harbour master answers letters when there is fog. ",
    "A second pier was planned in 1911, drawn twice, and never built. ",
];

/// A text of so many bytes.
#[must_use]
pub fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    let mut number = 0_usize;
    while text.len() < bytes {
        // Two strides through the list that share no divisor with its length, so that the order changes from
        // turn to turn.
        text.push_str(SENTENCES[(number * 3 + number / SENTENCES.len()) % SENTENCES.len()]);
        number += 1;
    }
    text.truncate(bytes);
    text
}

/// Logs this many lines as plugins log: on standard error, a hundred bytes each, in writes of some kilobytes.
///
/// # Errors
/// If the reader is gone.
pub fn log(lines: usize) -> std::io::Result<()> {
    const LINE: &str =
        "the ferry of ten past eight has left, and the harbour master answers letters: there is fog again\n";
    let mut out = std::io::BufWriter::new(std::io::stderr().lock());
    for _ in 0..lines {
        out.write_all(LINE.as_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_length_and_is_clean() {
        for bytes in [0, 1, 1024, 64 << 10] {
            let text = text(bytes);
            assert_eq!(text.len(), bytes);
            let sanitizer = talon_sanitize::Sanitizer::default();
            assert_eq!(sanitizer.text(&text, &mut talon_sanitize::FamilyCounts::default()), *text);
        }
    }
}
