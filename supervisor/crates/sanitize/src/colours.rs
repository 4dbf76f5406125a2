//! Removes colours: the terminal sequences that change nothing but how text looks.
//!
//! Compilers and test runners write several of them a line. Shown like other terminal sequences they would
//! make the text hard to read, and a model has no use for them. What they hide from a person (concealed or
//! black text) is visible without them. Whatever their removal joins is scanned afterwards.

use std::borrow::Cow;

/// The longest parameters that count, in bytes: two colours of 24 bits and some attributes take 50. A longer
/// sequence is shown like any other.
const MAX_PARAMETERS: usize = 64;

/// The text without colours, and how many were removed.
pub(crate) fn strip(text: &str) -> (Cow<'_, str>, u32) {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at, mut count) = (String::new(), 0, 0, 0u32);
    while let Some(escape) =
        bytes.get(at..).and_then(|rest| memchr::memchr(0x1b, rest)).map(|found| at + found)
    {
        at = escape + 1;
        if let Some(length) = length(&bytes[at..]) {
            out.push_str(&text[copied..escape]);
            at += length;
            copied = at;
            count = count.saturating_add(1);
        }
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    out.push_str(&text[copied..]);
    (Cow::Owned(out), count)
}

/// The length of the colour sequence that a text begins with.
pub(crate) fn sequence_bytes(text: &str) -> Option<usize> {
    Some(1 + length(text.as_bytes().strip_prefix(b"\x1b")?)?)
}

/// The length of the rest of a colour behind its escape: `[1;31m`, or the `[K` that compilers write behind
/// each one, which erases the empty rest of the line.
fn length(rest: &[u8]) -> Option<usize> {
    let parameters = rest.strip_prefix(b"[")?;
    let digits = parameters
        .iter()
        .take(MAX_PARAMETERS)
        .take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'))
        .count();
    match parameters.get(digits)? {
        b'm' => Some(digits + 2),
        b'K' if matches!(&parameters[..digits], b"" | b"0") => Some(digits + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_and_other_sequences_stay() {
        for (text, wanted, count) in [
            ("\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: x", "error: x", 3),
            ("\u{1b}[01m\u{1b}[Kx.c:1:\u{1b}[m\u{1b}[K", "x.c:1:", 4),
            ("\u{1b}[38:2::1:2:3mx", "x", 1),
            ("\u{1b}[2J\u{1b}[1K\u{1b}[3A\u{1b}]0;t\u{7}", "\u{1b}[2J\u{1b}[1K\u{1b}[3A\u{1b}]0;t\u{7}", 0),
            ("\u{1b}[?25m\u{1b}[1", "\u{1b}[?25m\u{1b}[1", 0),
            // The first escape is broken off by the second, and shown.
            ("\u{1b}[\u{1b}[0m31m", "\u{1b}[31m", 1),
        ] {
            let (out, removed) = strip(text);
            assert_eq!((&*out, removed), (wanted, count), "{text:?}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(MAX_PARAMETERS));
        assert_eq!(strip(&long), (Cow::Borrowed(&*long), 0));
    }
}
