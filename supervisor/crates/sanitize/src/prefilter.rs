//! The second stage of a scan: decides whether a candidate needs a window. A "no" has to be right,
//! a "yes" costs a closer look. Most tags of a page and keys of a record end here, so it reads words of eight
//! bytes, and uses tables where a branch would be mispredicted.

mod bytes;
mod escapes;
mod key;
mod line;
mod name;
mod prefixes;

use crate::non_ascii;

use self::bytes::is_ambiguous;
pub(crate) use self::escapes::REFERENCE_LISTS;
use self::escapes::{is_run, may_be_digit, may_be_percent, may_be_reference};
pub(crate) use self::key::KEY_LISTS;
use self::key::may_be_key;
use self::line::may_be_speaker;
pub(crate) use self::line::{SPEAKERS_REVERSED, TURN_LISTS, may_begin_turn};
pub(crate) use self::name::NAME_LISTS;
use self::name::{may_be_bracket, may_be_tag};

/// Whether syntax may begin at `at`, so that a window is needed.
#[inline]
pub(crate) fn may_match(bytes: &[u8], at: usize) -> bool {
    let next = bytes.get(at + 1).copied().unwrap_or(0);
    let behind = at + 1;
    match bytes[at] {
        b'<' => may_be_tag(bytes, behind, next),
        b'"' => may_be_key(bytes, behind, next),
        b'\n' => may_begin_turn(bytes, behind) || next == b':',
        b'[' => may_be_bracket(bytes, behind, next),
        b'&' => may_be_reference(bytes, behind, next),
        b'\\' => match next {
            b'n' | b'r' => may_begin_turn(bytes, at + 2),
            b'u' | b'x' | b'U' | b'X' | b'N' | b'R' | b'&' | b'%' | b':' | 0 | 0x80.. => true,
            _ => false,
        },
        // `%u003c` is the longest escape: in front of more `%` than that there is none.
        b'%' if next == b'%' && is_run(&bytes[behind..], b'%', 5) => false,
        b'%' if next >= 0x80 => may_be_digit(&bytes[behind..]),
        b'%' => may_be_percent(next, bytes.get(at + 2).copied().unwrap_or(0)),
        // Of a run only the first one decides.
        byte @ (b'`' | b'#') => {
            (next == byte || next == 0 || is_ambiguous(next)) && (at == 0 || bytes[at - 1] != byte)
        }
        b'|' => next == b'>',
        // Paths and strike-through.
        b'~' => !matches!(next, b'/' | b'~' | b'.' | b'='),
        b'\r' => next != b'\n',
        // Any other byte in front of a colon.
        b'\t' | b'\x0c' | b' '..=b'~' | 0x80..=0xbf => next == b':' && may_be_speaker(&bytes[..=at]),
        // Curly quotes, the most frequent relevant characters.
        0xe2 if matches!(bytes.get(behind..behind + 2), Some([0x80, 0x9c | 0x9d])) => {
            may_be_key(bytes, behind + 2, bytes.get(behind + 2).copied().unwrap_or(0))
        }
        0xc0.. => non_ascii::may_be_relevant(bytes, at),
        _ => true,
    }
}
