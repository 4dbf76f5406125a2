//! Reads the notes that stand in place of invisible and control characters.

/// A note at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    /// The first of the characters that it replaces.
    pub(crate) first: char,
    /// How many it replaces.
    pub(crate) count: usize,
    /// Its own length.
    pub(crate) bytes: usize,
}

/// The longest note: `(U+E0FFF ×8388608)`, where the sign has two bytes.
const MAX_NOTE_BYTES: usize = 24;

/// The note that a text begins with, as `(U+200B)`, `(U+200B ×3)` or `␛`.
pub(crate) fn parse(text: &str) -> Option<Note> {
    let picture = text.chars().next()?;
    let control = match picture {
        '\u{2400}'..='\u{241f}' => char::from_u32(u32::from(picture) - 0x2400),
        '␡' => Some('\u{7f}'),
        _ => None,
    };
    if let Some(first) = control {
        return Some(Note { first, count: 1, bytes: picture.len_utf8() });
    }
    let end = text[..text.floor_char_boundary(MAX_NOTE_BYTES)].find(')')?;
    let body = text[..end].strip_prefix("(U+")?;
    let (code, count) = match body.split_once(" ×") {
        Some((code, count)) => (code, count.parse().ok()?),
        None => (body, 1),
    };
    let is_code = (4..=6).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_hexdigit());
    let first = u32::from_str_radix(code, 16).ok().filter(|_| is_code).and_then(char::from_u32)?;
    Some(Note { first, count, bytes: end + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::write_note;

    #[test]
    fn every_note_is_read_as_it_was_written() {
        for (first, count) in [
            ('\u{200b}', 1),
            ('\u{200b}', 3),
            ('\u{e0fff}', 8_388_608),
            ('\u{1b}', 1),
            ('\u{7f}', 1),
            ('\u{9b}', 1),
        ] {
            let mut text = String::new();
            write_note(&mut text, first, count);
            let bytes = text.len();
            text.push_str(" and more");
            assert_eq!(parse(&text), Some(Note { first, count, bytes }), "{text}");
        }
        for text in ["", "x", "(U+)", "(U+12)", "(U+200B", "(U+200B x)", "(U+D800)", "(U+200B ×)"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
