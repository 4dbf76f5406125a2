//! Finds text in base64, hexadecimal digits and rot13.
//!
//! The decoders are a table and a few lines each. A crate for them decodes whole, well-formed inputs into a
//! buffer; here most runs of the alphabet are file paths and hashes, so it matters to stop at the first byte
//! that no text contains.

use fearless_simd::{Level, Simd, dispatch};

use crate::edit::{Edit, EditKind};
use crate::family_counts::Family;
use crate::runs;
use crate::scan::{first_candidate, scan, scan_from};
use crate::shapes::TextEnd;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Base64,
    Hex,
}

/// Not a digit.
const NONE: u8 = 0xff;

impl Encoding {
    /// The shortest run that is decoded: 18 bytes from base64, 16 from hexadecimal digits. Shorter ones hold
    /// no useful instruction, and decode to text by chance more often.
    const fn min_run(self) -> usize {
        match self {
            Self::Base64 => runs::MIN_RUN,
            Self::Hex => 32,
        }
    }

    /// The value of each digit. Both alphabets of base64 at once: a mixture is decoded too.
    const fn digits(self) -> &'static [u8; 256] {
        const BASE64: [u8; 256] = {
            let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let mut table = [NONE; 256];
            let mut value = 0;
            while value < 64 {
                table[alphabet[value as usize] as usize] = value;
                value += 1;
            }
            (table[b'-' as usize], table[b'_' as usize]) = (62, 63);
            table
        };
        const HEX: [u8; 256] = {
            let mut table = [NONE; 256];
            let mut value = 0;
            while value < 16 {
                table[b"0123456789abcdef"[value as usize] as usize] = value;
                table[b"0123456789ABCDEF"[value as usize] as usize] = value;
                value += 1;
            }
            table
        };
        match self {
            Self::Base64 => &BASE64,
            Self::Hex => &HEX,
        }
    }
}

/// How many digits are decoded at a time: a multiple of the digits of one byte. Each piece of a long run is
/// checked alone.
const PIECE: usize = 4096;

/// Whether runs of base64 and of hexadecimal digits decode to readable text.
pub(crate) fn detect(text: &str) -> [bool; 2] {
    let encodings = [Encoding::Base64, Encoding::Hex];
    let mut held = [false; 2];
    let (mut rest, digits) = (text.as_bytes(), Encoding::Base64.digits());
    // Hexadecimal digits are base64 digits too.
    while let Some(start) = runs::first(rest) {
        let behind = &rest[start..];
        let end = behind.iter().position(|&byte| digits[usize::from(byte)] == NONE).unwrap_or(behind.len());
        for (held, encoding) in held.iter_mut().zip(encodings) {
            *held |= run_decodes_to_text(&behind[..end], encoding);
        }
        rest = &behind[end..];
    }
    held
}

fn run_decodes_to_text(run: &[u8], encoding: Encoding) -> bool {
    let digits = encoding.digits();
    let run = match encoding {
        Encoding::Base64 => run,
        Encoding::Hex => run.strip_prefix(b"0x").unwrap_or(run),
    };
    run.len() >= encoding.min_run()
        && (encoding == Encoding::Base64 || run.iter().all(|&byte| digits[usize::from(byte)] != NONE))
        && run.chunks(PIECE).any(|piece| decodes_to_text(piece, encoding))
}

fn decodes_to_text(piece: &[u8], encoding: Encoding) -> bool {
    let digits = encoding.digits();
    let value = |digit: &u8| u32::from(digits[usize::from(*digit)]);
    if encoding == Encoding::Base64
        && let Some(text) = utf16_inside(piece)
    {
        return is_readable(&text);
    }
    let mut decoded = Vec::new();
    match encoding {
        Encoding::Base64 => {
            for group in piece.chunks(4) {
                let bits =
                    group.iter().fold(0, |bits, digit| bits << 6 | value(digit)) << (6 * (4 - group.len()));
                let whole = group.len() * 6 / 8;
                decoded.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
                if decoded[decoded.len() - whole..].iter().any(is_non_text_byte) {
                    return false;
                }
            }
        }
        Encoding::Hex => {
            for pair in piece.as_chunks::<2>().0 {
                let byte = (value(&pair[0]) << 4 | value(&pair[1])) as u8;
                if is_non_text_byte(&byte) {
                    return false;
                }
                decoded.push(byte);
            }
        }
    }
    // A piece may begin and end in the middle of a character.
    let begin = decoded.iter().take(3).take_while(|&&byte| byte & 0xc0 == 0x80).count();
    match core::str::from_utf8(&decoded[begin..]) {
        Ok(text) => is_readable(text) || encoding == Encoding::Base64 && holds_hex(text),
        Err(error) if error.error_len().is_none() => {
            core::str::from_utf8(&decoded[begin..begin + error.valid_up_to()]).is_ok_and(is_readable)
        }
        Err(_) => false,
    }
}

/// The text that the piece holds in UTF-16, as `PowerShell` encodes its commands: nearly every other byte is
/// zero, in text of western languages, which is enough to tell.
fn utf16_inside(piece: &[u8]) -> Option<String> {
    /// Bytes that are looked at first; most pieces are no UTF-16.
    const FIRST: usize = 24;
    let decode = |digits: &[u8]| -> Vec<u8> {
        let table = Encoding::Base64.digits();
        let groups = digits.chunks(4).flat_map(|group| {
            let value = |bits: u32, digit: &u8| bits << 6 | u32::from(table[usize::from(*digit)]);
            let bits = group.iter().fold(0, value) << (6 * (4 - group.len()));
            bits.to_be_bytes().into_iter().skip(1).take(group.len() * 6 / 8)
        });
        groups.collect()
    };
    let first = decode(&piece[..piece.len().min(FIRST)]);
    let zeros = |offset: usize| first.iter().skip(offset).step_by(2).filter(|byte| **byte == 0).count();
    let half = first.len() / 2;
    // All but one: a mark of the byte order, or one letter with an accent.
    let read: fn([u8; 2]) -> u16 = match (zeros(0) + 1 >= half, zeros(1) + 1 >= half) {
        (false, true) => u16::from_le_bytes,
        (true, false) => u16::from_be_bytes,
        _ => return None,
    };
    let units = decode(piece).as_chunks::<2>().0.iter().map(|unit| read(*unit)).collect::<Vec<_>>();
    Some(String::from_utf16_lossy(&units).trim_start_matches('\u{feff}').to_owned())
}

/// Whether a text that was decoded from base64 holds hexadecimal digits of readable text.
fn holds_hex(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|run| run_decodes_to_text(run.as_bytes(), Encoding::Hex))
}

/// Whether the byte occurs in no text of any language.
fn is_non_text_byte(byte: &u8) -> bool {
    matches!(byte, 0..=8 | 0xb | 0xe..=0x1f | 0x7f | 0xc0 | 0xc1 | 0xf5..)
}

fn is_readable(text: &str) -> bool {
    /// Fewer characters are not a sentence.
    const MIN_CHARS: usize = 8;
    let (mut chars, mut letters, mut spaces) = (0, 0, 0);
    for c in text.chars() {
        chars += 1;
        letters += usize::from(c.is_alphabetic());
        spaces += usize::from(c.is_whitespace());
    }
    // Not every script has spaces between its words.
    let words = spaces >= 2 || !text.is_ascii() && letters > 0;
    let sentence = chars >= MIN_CHARS && words && (letters + spaces) * 4 >= chars * 3;
    sentence || scan(text, TextEnd::Closed).iter().any(is_syntax)
}

fn is_syntax(edit: &Edit) -> bool {
    matches!(edit.kind, EditKind::Mark(..))
}

/// Whether rotating its letters by 13 reveals control syntax that the text does not hold unrotated.
pub(crate) fn reveals_syntax_when_rotated(text: &str) -> bool {
    let turned = dispatch!(Level::new(), simd => rot13(simd, text.as_bytes()));
    let Some(first) = first_candidate(&turned) else { return false };
    // Letters became letters.
    let Ok(turned) = String::from_utf8(turned) else { return false };
    let mut bare = scan_from(&turned, TextEnd::Closed, first);
    bare.retain(|edit| is_syntax(edit) && is_named(&turned, edit));
    if bare.is_empty() {
        return false;
    }
    // Both lists are sorted, and no character moved.
    let own = scan(text, TextEnd::Closed);
    bare.iter().any(|edit| own.binary_search_by_key(&edit.at, |own| own.at).is_err())
}

/// The compiler turns the loop into the available vector instructions.
#[inline(always)]
fn rot13<S: Simd>(_: S, bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|&byte| rot13_byte(byte)).collect()
}

#[inline(always)]
fn rot13_byte(byte: u8) -> u8 {
    let letter = (byte | 0x20).wrapping_sub(b'a');
    // Without a branch, so that the compiler vectorizes the loop.
    let by = 13 * u8::from(letter < 13);
    let back = 13 * u8::from((13..26).contains(&letter));
    byte.wrapping_add(by).wrapping_sub(back)
}

/// Whether the delimiter has a real name: spreadsheet formulas stand between `<f>` and `</f>`.
fn is_named(text: &str, edit: &Edit) -> bool {
    const MIN_NAME: usize = 3;
    if !matches!(edit.kind, EditKind::Mark(Family::Tag | Family::Bracket, _)) {
        return true;
    }
    let name = text[edit.at..].trim_start_matches(|c: char| c == '/' || c.is_whitespace());
    name.bytes().take(MIN_NAME).filter(u8::is_ascii_alphabetic).count() == MIN_NAME
}
