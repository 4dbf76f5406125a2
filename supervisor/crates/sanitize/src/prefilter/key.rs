//! Prefilters for JSON keys, and for the values of `type`.

use super::bytes::{is_ambiguous, length};
use super::prefixes::PrefixTable;
use crate::names;
use crate::swar::EightBytes;
use crate::vocabulary::CALL_KEYS;

/// Whether a relevant key may stand behind the quote.
#[inline]
pub(super) fn may_be_key(bytes: &[u8], behind: usize, next: u8) -> bool {
    if !next.is_ascii_whitespace() {
        return may_be_plain_key(bytes, behind);
    }
    let at = behind + length(&bytes[behind..], u8::is_ascii_whitespace);
    at == bytes.len() || may_be_plain_key(bytes, at)
}

#[inline]
fn may_be_plain_key(bytes: &[u8], at: usize) -> bool {
    if !KEYS.may_begin(EightBytes::at(bytes, at)) {
        return false;
    }
    match plain_word(&bytes[at..]) {
        Some(b"type") => may_be_call_type(&bytes[at + b"type\"".len()..]),
        Some(word) => is_call_key(word),
        None => may_be_split_key(&bytes[at..]),
    }
}

/// The same with white space inside the key, and accents on its letters.
fn may_be_split_key(bytes: &[u8]) -> bool {
    let (mut first, mut count, mut at) = ([0; 3], 0, 0);
    while let (Some(slot), Some(&byte)) = (first.get_mut(count), bytes.get(at)) {
        at += 1;
        if byte.is_ascii_whitespace() || matches!(byte, b'_' | b'-') {
            continue;
        }
        *slot = byte;
        if byte == LATIN
            && let Some(letter) = bytes.get(at).and_then(unaccented)
        {
            *slot = letter;
            at += 1;
        }
        count += 1;
    }
    KEYS.may_begin_with(first[0], first[1], first[2])
}

/// The first byte of the characters from U+00C0 to U+00FF.
const LATIN: u8 = 0xc3;

/// What a letter of those folds to, by its second byte; `None` if it may fold to several letters or to
/// nothing.
fn unaccented(second: &u8) -> Option<u8> {
    const LETTERS: &[u8; 64] = b"aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.y";
    LETTERS.get(usize::from(second & 0x3f)).copied().filter(u8::is_ascii_lowercase)
}

/// The word up to the quote, if it consists of ASCII characters that folding only lower-cases.
fn plain_word(bytes: &[u8]) -> Option<&[u8]> {
    /// The longest relevant key or value has some 32.
    const MAX_WORD: usize = 40;
    let near = &bytes[..bytes.len().min(MAX_WORD)];
    let end = near.iter().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-'))?;
    (near[end] == b'"').then(|| &near[..end])
}

#[cold]
fn is_call_key(word: &[u8]) -> bool {
    let folded = word.to_ascii_lowercase();
    core::str::from_utf8(&folded).is_ok_and(|key| key == "type" || names::is_call_key(key))
}

/// Whether a relevant value may follow the key `type`.
fn may_be_call_type(rest: &[u8]) -> bool {
    let colon = length(rest, u8::is_ascii_whitespace);
    let Some(behind) = rest[colon..].strip_prefix(b":") else {
        // The end, or something that may fold to a colon or to nothing.
        return rest.get(colon).is_none_or(|&byte| is_ambiguous(byte));
    };
    let quote = length(behind, u8::is_ascii_whitespace);
    match behind.get(quote) {
        Some(b'"') => match plain_word(&behind[quote + 1..]) {
            // Only one single word is relevant.
            Some(word) => {
                word.contains(&b'_') || word.contains(&b'-') || word.eq_ignore_ascii_case(b"function")
            }
            None => true,
        },
        Some(&byte) => is_ambiguous(byte),
        None => true,
    }
}

/// The keys of [`crate::shapes::json_call`].
pub(crate) const KEY_LISTS: [&[&str]; 2] = [&["type"], &CALL_KEYS];

static KEYS: PrefixTable = PrefixTable::of(&KEY_LISTS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{Folded, fold};

    #[test]
    fn letters_without_their_accents_are_what_they_fold_to() {
        for c in '\u{c0}'..='\u{ff}' {
            let mut bytes = [0; 2];
            c.encode_utf8(&mut bytes);
            assert_eq!(bytes[0], LATIN);
            assert!(unaccented(&bytes[1]).is_none_or(|letter| fold(c) == Folded::One(letter)), "{c}");
        }
    }
}
