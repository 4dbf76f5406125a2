//! Prefilters for escaped characters: HTML references and percent escapes.

use super::bytes::{is_ambiguous, length};
use super::key::may_be_key;
use super::name::may_be_tag;
use super::prefixes::PrefixTable;
use crate::entity::MAX_REFERENCE;
use crate::fold::{Folded, fold};
use crate::invisible::is_invisible;
use crate::non_ascii;
use crate::swar::EightBytes;

/// Whether `&` and what is behind it may stand for an opener or a line break.
pub(super) fn may_be_reference(bytes: &[u8], behind: usize, next: u8) -> bool {
    let rest = &bytes[behind..];
    match next {
        b'#' => may_be_number(&rest[1..]),
        b'%' | b'\\' | 0 | 0x80.. => true,
        // `a & b`, `a &= b`
        b' ' | b'\t' | b'\n' | b'\r' | b'=' => false,
        // `a && b`
        b'&' if is_run(rest, b'&', MAX_REFERENCE) => false,
        b'&' => rest.get(1) == Some(&b'#') || begins_reference(EightBytes::at(rest, 1)),
        b'l' | b'L' if rest.get(1).is_some_and(|&byte| byte | 0x20 == b't') => match rest.get(2) {
            Some(b';') => may_be_tag(bytes, behind + 3, rest.get(3).copied().unwrap_or(0)),
            _ => true,
        },
        _ if !REFERENCE_PREFIXES.may_begin(EightBytes::at(bytes, behind)) => false,
        // Neither visible characters nor white space stand between its letters.
        _ if rest.iter().skip(1).take(2).any(|&byte| matches!(byte, 0..=b' ' | b'_' | b'-' | 0x7f)) => false,
        // `&amp;` decodes further only if a reference continues behind it.
        b'a' => match rest.strip_prefix(b"amp;").map(<[u8]>::first) {
            Some(Some(&byte)) => byte == b'#' || begins_reference(EightBytes::at(rest, 4)),
            _ => true,
        },
        b'q' => match rest.strip_prefix(b"quot;").map(<[u8]>::first) {
            Some(Some(&byte)) => may_be_key(bytes, behind + 5, byte),
            _ => true,
        },
        _ => true,
    }
}

/// Whether the bytes begin with this many of the same byte, more than an escape in front of them could use.
pub(super) fn is_run(bytes: &[u8], byte: u8, length: usize) -> bool {
    bytes.get(..length).is_some_and(|run| run.iter().all(|&other| other == byte))
}

/// Whether the word begins with the name of a relevant reference. `lt` counts whatever follows it.
fn begins_reference(word: EightBytes) -> bool {
    REFERENCE_PREFIXES.may_begin(word) || word.byte(0) | 0x20 == b'l' && word.byte(1) | 0x20 == b't'
}

/// Whether a numeric reference may stand for a relevant character; `&#8217;` and the like are in every page.
fn may_be_number(digits: &[u8]) -> bool {
    let length = length(digits, u8::is_ascii_digit);
    if length == 0 || digits.get(length) != Some(&b';') {
        return true;
    }
    let code = digits[..length.min(8)].iter().fold(0, |code, digit| code * 10 + u32::from(digit - b'0'));
    match char::from_u32(code) {
        Some('"' | '“' | '”') => {
            may_be_key(digits, length + 1, digits.get(length + 1).copied().unwrap_or(0))
        }
        Some(c) => non_ascii::is_relevant(c) || !c.is_ascii_alphanumeric(),
        None => true,
    }
}

/// Whether `%` and two digits may stand for an opener, an escape or a line break.
pub(super) fn may_be_percent(first: u8, second: u8) -> bool {
    if is_ambiguous(second) {
        return true;
    }
    let second = second | 0x20;
    match first {
        b'0' => matches!(second, b'a' | b'd'),
        b'2' => matches!(second, b'2' | b'3' | b'5' | b'6'),
        b'3' => matches!(second, b'a' | b'c'),
        b'5' => matches!(second, b'b' | b'c'),
        b'6' => second == b'0',
        b'7' => second == b'e',
        // Characters beyond ASCII that pass for an opener, as in Latin-1.
        b'8' | b'a' | b'A' | b'u' | b'U' | 0 => true,
        _ => is_ambiguous(first),
    }
}

/// Whether the non-ASCII character may fold to the digit behind a percent sign, or to nothing. The one in
/// `12%，` does.
#[cold]
pub(super) fn may_be_digit(bytes: &[u8]) -> bool {
    let near = &bytes[..bytes.len().min(char::MAX_LEN_UTF8)];
    let Some(c) = near.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next()) else {
        return true;
    };
    is_invisible(c)
        || match fold(c) {
            Folded::Other => false,
            Folded::One(byte) => byte.is_ascii_hexdigit() || byte == b'u' || is_ambiguous(byte),
            Folded::Nothing | Folded::Several(_) => true,
        }
}

/// The references of [`crate::entity`] that stand for an opener, an escape or a line break, without `lt`.
const REFERENCES: [&str; 14] = [
    "amp", "bsol", "colon", "grave", "lang", "laquo", "lbrack", "lobrk", "lsaquo", "lsqb", "newline", "num",
    "percnt", "quot",
];

/// With `lt`.
pub(crate) const REFERENCE_LISTS: [&[&str]; 2] = [&REFERENCES, &["lt"]];

static REFERENCE_PREFIXES: PrefixTable = PrefixTable::of(&[&REFERENCES]);
