//! Decodes escapes: HTML references and hexadecimal digits, from folded units.

use crate::unit::{END, OTHER, Unit};

/// The longest body of a reference: the length of the longest name in [`NAMED`].
pub(crate) const MAX_REFERENCE: usize = 12;

/// The references that stand for ASCII punctuation, white space or nothing visible, lower-cased. Others
/// cannot be part of a shape.
const NAMED: [(&[u8], char); 47] = [
    (b"lt", '<'),
    (b"gt", '>'),
    (b"amp", '&'),
    (b"quot", '"'),
    (b"apos", '\''),
    (b"lsqb", '['),
    (b"lbrack", '['),
    (b"rsqb", ']'),
    (b"rbrack", ']'),
    (b"lcub", '{'),
    (b"lbrace", '{'),
    (b"rcub", '}'),
    (b"rbrace", '}'),
    (b"vert", '|'),
    (b"verbar", '|'),
    (b"verticalline", '|'),
    (b"sol", '/'),
    (b"bsol", '\\'),
    (b"colon", ':'),
    (b"semi", ';'),
    (b"num", '#'),
    (b"grave", '`'),
    (b"percnt", '%'),
    (b"lowbar", '_'),
    (b"underbar", '_'),
    (b"equals", '='),
    (b"hyphen", '-'),
    (b"dash", '-'),
    (b"lang", '<'),
    (b"langle", '<'),
    (b"rang", '>'),
    (b"rangle", '>'),
    (b"laquo", '<'),
    (b"raquo", '>'),
    (b"lsaquo", '<'),
    (b"rsaquo", '>'),
    (b"lobrk", '['),
    (b"robrk", ']'),
    (b"nbsp", ' '),
    (b"ensp", ' '),
    (b"emsp", ' '),
    (b"thinsp", ' '),
    (b"tab", '\t'),
    (b"newline", '\n'),
    (b"shy", '\u{ad}'),
    (b"zwj", '\u{200d}'),
    (b"zwnj", '\u{200c}'),
];

/// The relevant references that HTML also accepts without a semicolon.
const WITHOUT_SEMICOLON: [(&[u8], char); 6] =
    [(b"lt", '<'), (b"gt", '>'), (b"amp", '&'), (b"quot", '"'), (b"nbsp", ' '), (b"shy", '\u{ad}')];

/// The character that `&body;` stands for.
pub(crate) fn with_semicolon(body: &[Unit]) -> Option<char> {
    let (name, len) = bytes(body)?;
    let name = &name[..len];
    numeric(name).or_else(|| NAMED.iter().find(|(known, _)| *known == name).map(|&(_, c)| c))
}

/// Whether a reference that begins like this may lack its semicolon. An escape in its body may decode to its
/// first character too.
pub(crate) fn may_lack_semicolon(first: u8) -> bool {
    matches!(first, b'#' | b'l' | b'g' | b'a' | b'q' | b'n' | b's' | b'%' | b'\\')
}

/// The character that `&body` stands for if `following` comes next and is not a semicolon.
pub(crate) fn without_semicolon(body: &[Unit], following: u8) -> Option<char> {
    /// `quot`, `nbsp`.
    const LONGEST: usize = 4;
    let number = body.first()?.byte == b'#';
    if !number && body.len() > LONGEST {
        return None;
    }
    let (name, len) = bytes(body)?;
    let name = &name[..len];
    if number {
        let c = numeric(name)?;
        let hex = name[1] == b'x';
        let goes_on = if hex { following.is_ascii_hexdigit() } else { following.is_ascii_digit() };
        return (!goes_on).then_some(c);
    }
    WITHOUT_SEMICOLON.iter().find(|(known, _)| *known == name).map(|&(_, c)| c)
}

/// The character with the code that the units spell in hexadecimal.
pub(crate) fn hex(digits: &[Unit]) -> Option<char> {
    char::from_u32(hex_code(digits)?)
}

/// The character of the surrogate pair that the units spell, each in hexadecimal: `\ud835\udc28` in JSON.
pub(crate) fn hex_pair(high: &[Unit], low: &[Unit]) -> Option<char> {
    let units = [u16::try_from(hex_code(high)?).ok()?, u16::try_from(hex_code(low)?).ok()?];
    let mut chars = char::decode_utf16(units);
    chars.next()?.ok().filter(|_| chars.next().is_none())
}

fn hex_code(digits: &[Unit]) -> Option<u32> {
    let mut code = 0u32;
    for unit in digits {
        code = code.checked_mul(16)?.checked_add(char::from(unit.byte).to_digit(16)?)?;
    }
    (!digits.is_empty()).then_some(code)
}

fn numeric(name: &[u8]) -> Option<char> {
    let (radix, digits) = match name {
        [b'#', b'x', digits @ ..] => (16, digits),
        [b'#', digits @ ..] => (10, digits),
        _ => return None,
    };
    let mut code = 0u32;
    for &digit in digits {
        code = code.checked_mul(radix)?.checked_add(char::from(digit).to_digit(radix)?)?;
    }
    if digits.is_empty() { None } else { char::from_u32(code) }
}

fn bytes(body: &[Unit]) -> Option<([u8; MAX_REFERENCE], usize)> {
    let mut out = [0; MAX_REFERENCE];
    if body.is_empty() || body.len() > MAX_REFERENCE {
        return None;
    }
    for (slot, unit) in out.iter_mut().zip(body) {
        if matches!(unit.byte, OTHER | END) {
            return None;
        }
        *slot = unit.byte;
    }
    Some((out, body.len()))
}
