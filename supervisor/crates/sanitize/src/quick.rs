//! Cheap looks at raw bytes that spare clean text the work: where could anything begin, and is it worth opening
//! a window there? An answer of "no" has to be right, one of "yes" costs a closer look.

use crate::names::{self, Strength};

/// What may begin at a byte, one bit each; [`FOLLOWS`] says which of them the byte behind allows.
mod kind {
    /// Control characters, and first bytes of characters that need decoding.
    pub(super) const ANY: u16 = 1;
    pub(super) const ANGLE: u16 = 1 << 1;
    pub(super) const BRACKET: u16 = 1 << 2;
    pub(super) const QUOTE: u16 = 1 << 3;
    pub(super) const BACKTICK: u16 = 1 << 4;
    pub(super) const HASH: u16 = 1 << 5;
    pub(super) const BAR: u16 = 1 << 6;
    pub(super) const AMPERSAND: u16 = 1 << 7;
    pub(super) const BACKSLASH: u16 = 1 << 8;
    pub(super) const PERCENT: u16 = 1 << 9;
    pub(super) const LINE: u16 = 1 << 10;
    pub(super) const RETURN: u16 = 1 << 11;
    pub(super) const TILDE: u16 = 1 << 12;
    /// What may follow an opener only as itself.
    pub(super) const LITERAL: u16 = BAR | RETURN | TILDE;
}

static BEGINS: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'\t' | b'\x0c' => 0,
            b'\n' => kind::LINE,
            b'\r' => kind::RETURN,
            0..0x20 | 0x7f => kind::ANY,
            b'<' => kind::ANGLE,
            b'[' => kind::BRACKET,
            b'"' => kind::QUOTE,
            b'`' => kind::BACKTICK,
            b'#' => kind::HASH,
            b'|' => kind::BAR,
            b'&' => kind::AMPERSAND,
            b'\\' => kind::BACKSLASH,
            b'%' => kind::PERCENT,
            b'~' => kind::TILDE,
            // First bytes of characters that are invisible, controls, or pass for an opener: U+0080–U+00BF,
            // U+0280–U+02FF (ʺ ˂ ˋ), U+0340–U+037F (͏), U+0600–U+063F, U+1000–U+3FFF, U+F000–U+FFFF, and the planes
            // of 0x1xxxx and 0xExxxx.
            0xc2 | 0xca | 0xcb | 0xcd | 0xd8 | 0xe1 | 0xe2 | 0xe3 | 0xef | 0xf0 | 0xf3 => kind::ANY,
            _ => 0,
        };
        byte += 1;
    }
    table
};

static FOLLOWS: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let own = match byte as u8 {
            // White space may stand between an opener and its name.
            b' ' | b'\t' | b'\x0c' => kind::ANGLE | kind::BRACKET | kind::QUOTE | kind::LINE,
            b'\n' | b'\r' => kind::ANGLE | kind::BRACKET | kind::QUOTE,
            // Escapes and characters beyond ASCII may fold to anything.
            b'&' | b'\\' | b'%' => !(kind::LITERAL | kind::BACKSLASH),
            0x80.. => !kind::LITERAL,
            b'/' | b'|' | b':' | b'-' | b'_' => kind::ANGLE | kind::BRACKET,
            b']' => kind::ANGLE,
            b'>' => kind::BRACKET | kind::BAR | kind::LINE,
            b'`' => kind::BACKTICK,
            b'!' | b'[' => kind::TILDE,
            b'#' => kind::HASH | kind::AMPERSAND,
            b'2' | b'3' | b'5' | b'6' => kind::PERCENT,
            letter => {
                let tag =
                    if letter.is_ascii_alphabetic() { kind::ANGLE | kind::BRACKET | kind::TILDE } else { 0 };
                tag | match letter | 0x20 {
                    b't' => kind::QUOTE | kind::LINE,
                    b'f' => kind::QUOTE | kind::LINE,
                    b'a' => kind::LINE | kind::AMPERSAND,
                    b'h' | b'o' | b's' => kind::LINE,
                    b'u' => kind::LINE | kind::BACKSLASH | kind::PERCENT,
                    b'x' => kind::BACKSLASH,
                    b'n' => kind::BACKSLASH | kind::AMPERSAND,
                    b'r' => kind::BACKSLASH,
                    b'e' => kind::PERCENT,
                    b'b' | b'g' | b'l' | b'p' | b'q' => kind::AMPERSAND,
                    _ => 0,
                }
            }
        };
        // A return in front of a line break belongs to it; any other is a control character.
        let lone = if byte as u8 == b'\n' { 0 } else { kind::RETURN };
        table[byte] = own | lone | kind::ANY;
        byte += 1;
    }
    table
};

/// The next place at or after `at` where something may begin.
pub(crate) fn next(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let pair = rest
            .windows(2)
            .position(|pair| BEGINS[usize::from(pair[0])] & FOLLOWS[usize::from(pair[1])] != 0);
        let Some(found) = pair else {
            // The last byte has nothing behind it that could rule it out.
            let last = bytes.len() - 1;
            return (BEGINS[usize::from(bytes[last])] != 0).then_some(last);
        };
        at += found;
        if worth_a_look(bytes, at) {
            return Some(at);
        }
        at += 1;
    }
}

/// Whether the opener at `at`, which a fitting byte follows, is worth a window.
fn worth_a_look(bytes: &[u8], at: usize) -> bool {
    let rest = &bytes[at + 1..];
    let Some(&first) = rest.first() else { return true };
    match bytes[at] {
        b'<' => match first {
            b'/' => name(&rest[1..], names::tag),
            b']' | b'|' => true,
            _ => name(rest, names::tag),
        },
        b'[' => match first {
            b'/' => name(&rest[1..], names::bracket),
            b'|' | b'>' => true,
            _ => name(rest, names::bracket),
        },
        b'"' => json_key(rest),
        b'&' => may_spell(rest),
        b'\n' => may_begin_turn(bytes, at + 1),
        b'`' | b'#' => at == 0 || bytes[at - 1] != bytes[at],
        _ => true,
    }
}

/// Whether the name that `rest` begins with may be a suspicious one.
fn name(rest: &[u8], strength: impl Fn(&str) -> Strength) -> bool {
    let spaces = length(rest, u8::is_ascii_whitespace);
    let rest = &rest[spaces..];
    let Some(&first) = rest.first() else { return true };
    if !first.is_ascii_alphabetic() {
        return matches!(first, b'_' | b'-' | b'/' | b'|' | b':') || is_foreign(first);
    }
    let len = length(rest, u8::is_ascii_alphanumeric);
    let Some(&delimiter) = rest.get(len) else { return true };
    match delimiter {
        b'_' | b'-' | b':' | b'|' | b'&' | b'\\' | b'%' | 0x80.. => true,
        b'>' | b']' | b'/' | b'=' => {
            names::may_be_word(first, rest[1]) && is_suspicious(&rest[..len], strength)
        }
        byte if byte.is_ascii_whitespace() => {
            let behind = &rest[len..];
            let behind = &behind[length(behind, u8::is_ascii_whitespace)..];
            let Some(&other) = behind.first() else { return true };
            // `ns :name`, `tool _call`, `n s:name`.
            let word = length(behind, u8::is_ascii_alphanumeric);
            let torn = behind.get(word).is_none_or(|&byte| matches!(byte, b':' | b'_') || is_foreign(byte));
            let second = if len > 1 { rest[1] } else { other };
            torn || names::may_be_word(first, second)
        }
        _ => false,
    }
}

fn is_suspicious(word: &[u8], strength: impl Fn(&str) -> Strength) -> bool {
    /// The longest single word that counts has 17 letters.
    const MAX_WORD: usize = 20;
    let mut folded = [0; MAX_WORD];
    let Some(folded) = folded.get_mut(..word.len()) else { return false };
    folded.copy_from_slice(word);
    folded.make_ascii_lowercase();
    core::str::from_utf8(folded).is_ok_and(|word| strength(word) != Strength::None)
}

fn length(bytes: &[u8], belongs: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(byte)).unwrap_or(bytes.len())
}

/// Whether what follows a quote may be one of the keys that matter.
fn json_key(rest: &[u8]) -> bool {
    let (Some(&first), Some(&second)) = (rest.first(), rest.get(1)) else { return true };
    match (first | 0x20, second | 0x20) {
        (b't', b'y') => rest.strip_prefix(b"type\"").is_none_or(call_type),
        (b't', b'o') | (b'f', b'u') => true,
        (b't' | b'f', _) => !second.is_ascii_alphanumeric() && !matches!(second, b'"' | b',' | b'.'),
        _ if first.is_ascii_whitespace() => {
            let first = rest.iter().find(|byte| !byte.is_ascii_whitespace());
            first.is_none_or(|&byte| matches!(byte | 0x20, b't' | b'f') || is_foreign(byte))
        }
        _ => true,
    }
}

/// Whether what follows the key `type` may be one of the values that matter.
fn call_type(rest: &[u8]) -> bool {
    let mut value = rest.iter().skip_while(|byte| byte.is_ascii_whitespace() || **byte == b':');
    match (value.next(), value.next().map(|byte| byte | 0x20), value.next().map(|byte| byte | 0x20)) {
        (Some(b'"'), Some(first), Some(second))
            if first.is_ascii_alphanumeric() && second.is_ascii_alphanumeric() =>
        {
            matches!(
                (first, second),
                (b'f', b'u') | (b't', b'o') | (b'c', b'u') | (b's', b'e') | (b'm', b'c')
            )
        }
        (Some(b'{' | b'[' | b'0'..=b'9' | b',' | b'}'), ..) => false,
        _ => true,
    }
}

/// Whether the byte may begin a character that folds to something else.
fn is_foreign(byte: u8) -> bool {
    matches!(byte, 0x80..|b'&'| b'\\' | b'%')
}

/// Whether `&` and `rest` may spell an opener.
fn may_spell(rest: &[u8]) -> bool {
    // `&amp;` spells more only if a reference goes on behind it.
    match rest.strip_prefix(b"amp;").map(<[u8]>::first) {
        Some(behind) => {
            behind.is_none_or(|&byte| byte == b'#' || byte.is_ascii_alphabetic() || is_foreign(byte))
        }
        // `a && b`
        None if rest.first() == Some(&b'&') => {
            rest.get(1).is_none_or(|&byte| byte == b'#' || byte.is_ascii_alphabetic())
        }
        None => !rest.starts_with(b"nbsp;") && !rest.starts_with(b"gt;"),
    }
}

/// Whether the line that begins at `at` may begin with a turn.
pub(crate) fn may_begin_turn(bytes: &[u8], at: usize) -> bool {
    let rest = &bytes[at..];
    let indent = rest.iter().take_while(|&&byte| matches!(byte, b' ' | b'\t' | b'\x0c')).count();
    let Some(&first) = rest.get(indent) else { return false };
    let second = rest.get(indent + 1).copied().unwrap_or(b'\n');
    match (first | 0x20, second | 0x20) {
        (b'a', b'c' | b's')
        | (b'f', b'i')
        | (b'h', b'u')
        | (b'o', b'b')
        | (b's', b'y')
        | (b't', b'h')
        | (b'u', b's') => true,
        (b'a' | b'f' | b'h' | b'o' | b's' | b't' | b'u', _) => {
            is_foreign(second) || second.is_ascii_whitespace()
        }
        _ if first == b'>' => second == b'>' || is_foreign(second),
        _ => is_foreign(first),
    }
}
