//! Prefilters for the names of tags and brackets.

use super::bytes::{is_ambiguous, length};
use super::prefixes::PrefixTable;
use crate::names::{self, Confidence};
use crate::swar::EightBytes;
use crate::vocabulary::{TOOL_WORDS, WHOLE_NAMES};

/// What the byte behind a name says about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    /// A tag or bracket cannot continue like this.
    Other,
    /// It ends the name: the name decides.
    Exact,
    /// White space, behind which the name may continue.
    Space,
    /// The name may continue, or the text ends: a window decides.
    Open,
}

static DELIMITERS: [Delimiter; 256] = {
    let mut table = [Delimiter::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'>' | b']' | b'/' | b'=' => Delimiter::Exact,
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => Delimiter::Space,
            b'_' | b'-' | b':' | b'|' | b'&' | b'\\' | b'%' | 0 | 0x80.. => Delimiter::Open,
            _ => Delimiter::Other,
        };
        byte += 1;
    }
    table
};

/// The differences between tags and brackets.
#[derive(Clone, Copy)]
struct NameSyntax {
    confidence: fn(&str) -> Confidence,
    /// True for tags. A bracket may hold a heading of many words, which a window decides.
    tag: bool,
    /// The bracket that makes a sentinel behind the opener: `]<]`, `[>[`.
    sentinel: u8,
}

const TAG: NameSyntax = NameSyntax { confidence: names::tag, tag: true, sentinel: b']' };

const BRACKET: NameSyntax = NameSyntax { confidence: names::bracket, tag: false, sentinel: b'>' };

#[inline]
pub(super) fn may_be_tag(bytes: &[u8], behind: usize, next: u8) -> bool {
    match next {
        // `>>NAME<<`
        b'<' if begins_comment(bytes, behind) => true,
        b'<' => {
            behind > 1
                && !matches!(bytes[behind - 2], b' ' | b'<' | b'\n')
                && bytes.get(behind + 1) != Some(&b'<')
        }
        _ => may_be_name(bytes, behind + usize::from(next == b'/'), TAG),
    }
}

#[inline]
pub(super) fn may_be_bracket(bytes: &[u8], behind: usize, next: u8) -> bool {
    may_be_name(bytes, behind + usize::from(next == b'/'), BRACKET) || follows_tools(&bytes[..behind - 1])
}

/// Whether the text ends in `tools`, as far as ASCII letters tell: what is in brackets behind it may be
/// calls.
#[inline]
fn follows_tools(text: &[u8]) -> bool {
    let mut wanted = b"sloot".iter();
    for byte in text.iter().rev().filter(|byte| !byte.is_ascii_whitespace() && !byte.is_ascii_control()) {
        if is_ambiguous(*byte) || *byte == b';' {
            return true;
        }
        match wanted.next() {
            Some(letter) if *letter == byte | 0x20 => {}
            None => return true,
            Some(_) => return false,
        }
    }
    wanted.len() == 0
}

/// Whether the name that begins at `at` may be a suspicious one.
#[inline]
fn may_be_name(bytes: &[u8], at: usize, kind: NameSyntax) -> bool {
    let word = EightBytes::at(bytes, at);
    let length = word.word_length();
    // The mark: no shape allows it behind its opener.
    if length == 0 && word.byte(0) == 0xc2 && word.byte(1) == 0xb7 {
        return false;
    }
    match DELIMITERS[usize::from(word.byte(length))] {
        _ if length == 8 => long_name(bytes, at, kind),
        Delimiter::Other => begins_comment(bytes, at + length),
        _ if length == 0 && word.byte(0) == kind.sentinel => true,
        Delimiter::Exact if length == 0 => false,
        Delimiter::Exact => {
            NAMES.may_begin(word.first(length)) && is_suspicious(&bytes[at..at + length], kind)
                || may_end_behind_slash(bytes, at + length)
        }
        Delimiter::Space if length == 0 => after_space(bytes, at, kind),
        Delimiter::Space => may_be_split(bytes, at, length, kind),
        Delimiter::Open => true,
    }
}

/// Whether a comment begins at `at`: a reader that removes it joins its sides.
fn begins_comment(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(b"<!--"))
}

#[cold]
fn long_name(bytes: &[u8], at: usize, kind: NameSyntax) -> bool {
    let length = length(&bytes[at..], u8::is_ascii_alphanumeric);
    match DELIMITERS[usize::from(bytes.get(at + length).copied().unwrap_or(0))] {
        Delimiter::Other => begins_comment(bytes, at + length),
        Delimiter::Exact => {
            is_suspicious(&bytes[at..at + length], kind) || may_end_behind_slash(bytes, at + length)
        }
        Delimiter::Space => may_be_split(bytes, at, length, kind),
        Delimiter::Open => true,
    }
}

/// `< name`, `< / name`.
fn after_space(bytes: &[u8], at: usize, kind: NameSyntax) -> bool {
    let mut at = at + length(&bytes[at..], u8::is_ascii_whitespace);
    if bytes.get(at) == Some(&b'/') {
        at += 1;
        at += length(&bytes[at..], u8::is_ascii_whitespace);
    }
    match bytes.get(at) {
        Some(byte) if byte.is_ascii_whitespace() => false,
        Some(_) => may_be_name(bytes, at, kind),
        None => true,
    }
}

/// Whether the word of this length at `at`, with white space behind it, may be a name with attributes, or the
/// first part of a name that is split by white space.
fn may_be_split(bytes: &[u8], at: usize, length: usize, kind: NameSyntax) -> bool {
    /// No window is longer.
    const MAX_WORDS: usize = 4096;
    let mut end = at + length;
    loop {
        let run = EightBytes::at(bytes, end).words_length();
        end += run;
        if run < 8 || end - at > MAX_WORDS {
            break;
        }
    }
    match DELIMITERS[usize::from(bytes.get(end).copied().unwrap_or(0))] {
        Delimiter::Other => begins_comment(bytes, end),
        Delimiter::Open => !kind.tag || may_continue(&bytes[end..]),
        Delimiter::Exact | Delimiter::Space => {
            let mut letters = bytes[at..end].iter().filter(|byte| !byte.is_ascii_whitespace());
            let mut next = || letters.next().copied().unwrap_or(b'.');
            NAMES.may_begin_with(next(), next(), next())
                && (!kind.tag || may_be_spaced_words(&bytes[at..end], length))
                || may_end_behind_slash(bytes, end)
        }
    }
}

/// Whether a slash stands at `at` and the text may end behind it: the name may then become any other.
#[inline]
fn may_end_behind_slash(bytes: &[u8], at: usize) -> bool {
    if bytes[at] != b'/' || bytes.get(at + 1) == Some(&b'>') {
        return false;
    }
    let behind = &bytes[at + 1..];
    behind.get(length(behind, u8::is_ascii_whitespace)).is_none_or(|&byte| is_ambiguous(byte))
}

/// Whether a tag may continue with what is behind its words: of the operators of source code only `|>`, and
/// `&` escapes.
fn may_continue(rest: &[u8]) -> bool {
    let operator = match rest {
        [b'&', b'&', ..] => 2,
        [b'&' | b'|', ..] => 1,
        _ => return true,
    };
    let behind = &rest[operator..];
    let next = behind.get(length(behind, u8::is_ascii_whitespace)).copied();
    match rest[0] {
        b'|' => next.is_none_or(|next| next == b'>' || is_ambiguous(next)),
        _ => !behind.first().is_some_and(u8::is_ascii_whitespace),
    }
}

/// Whether words with white space between them may be a suspicious name: the first of them, which has this
/// length, or all of them together. Most of what comes here are elements with attributes: `<script type=`.
fn may_be_spaced_words(words: &[u8], length: usize) -> bool {
    let mut joined = [0; MAX_WORD];
    let mut end = 0;
    for &byte in words.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        // A hyphen splits it into several words, and a longer name is none of ours.
        let (b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z', Some(slot)) = (byte, joined.get_mut(end)) else {
            return true;
        };
        *slot = byte;
        end += 1;
    }
    is_suspicious(&words[..length], TAG) || is_suspicious(&joined[..end], TAG)
}

/// The longest relevant single word has 17 letters; one that only continues it may be twice as long.
const MAX_WORD: usize = 40;

fn is_suspicious(word: &[u8], kind: NameSyntax) -> bool {
    let mut folded = [0; MAX_WORD];
    let Some(folded) = folded.get_mut(..word.len()) else { return false };
    folded.copy_from_slice(word);
    folded.make_ascii_lowercase();
    let known = |word: &str| (kind.confidence)(word) != Confidence::None;
    // `<functionname=`: the space in front of the attribute is all that is missing.
    core::str::from_utf8(folded).is_ok_and(|word| known(word) || word.strip_suffix("name").is_some_and(known))
}

/// Single words that are names of tags or brackets, and the first words of longer names. Names of several
/// words are recognized by their `_` or `-`.
pub(crate) const NAME_LISTS: [&[&str]; 3] = [
    &TOOL_WORDS,
    &WHOLE_NAMES,
    &[
        "available",
        "begin",
        "end",
        "execute",
        "gmask",
        "mcp",
        "reflection",
        "round",
        "s",
        "scratchpad",
        "sep",
        "smask",
        "start",
        "stop",
    ],
];

static NAMES: PrefixTable = PrefixTable::of(&NAME_LISTS);
