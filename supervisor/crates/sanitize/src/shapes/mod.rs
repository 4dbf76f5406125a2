//! The shapes of control syntax, one file for each kind. Each inspects a [`Window`] of the skeleton that
//! begins at a possible opener and returns a verdict.

mod bracket;
mod description;
mod json_call;
mod line;
mod object;
mod tag;

use crate::family_counts::Family;
use crate::fold::{Folded, fold};
use crate::names;
use crate::role::Role;
use crate::skeleton::Window;
use crate::unit::{END, OTHER};

pub(crate) use bracket::{bracket, symbol, tilde};
pub(crate) use description::{describes_speaker, mentions_speaker};
pub(crate) use json_call::{Budget, json_call};
pub(crate) use line::{LineStart, MidLine, ReActStep, fence, heading, is_line_word, line_start, speaker};
pub(crate) use tag::{closing_bar, tag};

/// The result for one opener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not control syntax.
    Clean,
    /// Control syntax: insert a mark at this offset of the original.
    Mark { at: usize, family: Family },
    /// The closer of a name that everyday text uses too: it is marked, and so are its openers.
    Closer { at: usize, family: Family, key: u64 },
    /// The opener of such a name: marked if its closer follows, or, if it names a speaker, beside another
    /// speaker.
    Opener { at: usize, family: Family, key: u64, role: Option<Role> },
    /// The element of a record with such a name: neither it nor its closer is marked.
    Field { key: u64 },
    /// Control syntax that names a speaker.
    Speaker { at: usize, family: Family, role: Role },
    /// Control syntax only if the text also holds an unmistakable heading of a prompt.
    NearHeading { at: usize, family: Family },
}

/// What follows the last character of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextEnd {
    /// Unknown: other text may follow, so an unfinished delimiter counts.
    Open,
    /// The closing quote of a JSON string.
    Closed,
}

/// The longest name that is read; the longest in use has 36 characters.
const MAX_NAME: usize = 64;

/// A folded name.
#[derive(Debug)]
pub(crate) struct Name {
    bytes: [u8; MAX_NAME],
    len: usize,
    /// Index of the unit behind it.
    next: usize,
    /// White space was dropped inside.
    spaced: bool,
}

impl Name {
    /// Reads letters, digits, `_` and `-`. White space is dropped beside `_` only, or anywhere if `loose`.
    /// A name that is too long is returned empty.
    fn read(window: &mut Window<'_, '_>, mut index: usize, loose: bool) -> Self {
        let mut name = Self { bytes: [0; MAX_NAME], len: 0, next: index, spaced: false };
        loop {
            let mut byte = window.get(index);
            if matches!(byte, b' ' | b'\n') && name.len > 0 {
                let beyond = window.skip_space(index);
                let further = window.get(beyond);
                if is_name(further) && (loose || further == b'_' || name.bytes[name.len - 1] == b'_') {
                    name.spaced = true;
                    (index, byte) = (beyond, further);
                }
            }
            name.next = index;
            if !is_name(byte) {
                return name;
            }
            if name.len == MAX_NAME {
                name.len = 0;
                return name;
            }
            name.bytes[name.len] = byte;
            name.len += 1;
            index += 1;
        }
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Distinguishes names well enough to pair openers with closers.
    fn key(&self) -> u64 {
        self.bytes[..self.len].iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether `ident =` stands at `index`: the first attribute of a tag.
fn attribute(window: &mut Window<'_, '_>, index: usize, ending: TextEnd) -> bool {
    let name = Name::read(window, index, false);
    if name.len == 0 {
        return false;
    }
    let beyond = window.skip_space(name.next);
    match window.get(beyond) {
        b'=' => true,
        END => ending == TextEnd::Open,
        _ => false,
    }
}

/// Whether a call's arguments may begin at `index`.
fn payload(window: &mut Window<'_, '_>, index: usize) -> bool {
    let index = window.skip_space(index);
    match window.get(index) {
        b'{' => true,
        b'[' => {
            let inner = window.skip_space(index + 1);
            matches!(window.get(inner), b'{' | b'"')
        }
        _ => false,
    }
}

/// Whether the text ends inside a name that may become a suspicious one.
fn is_unfinished(next: u8, name: &Name, ending: TextEnd) -> bool {
    next == END && ending == TextEnd::Open && (name.len == 0 || names::may_become_name(name.as_str()))
}

/// Whether source code would spell a type this way: `Vec<ToolCall>`. Mixed case meant to evade has shorter
/// humps.
fn is_type_name(spelled: &str) -> bool {
    let mut hump = 0;
    let mut any = false;
    for byte in spelled.bytes() {
        match byte {
            b'A'..=b'Z' if any && hump < 3 => return false,
            b'A'..=b'Z' => (hump, any) = (1, true),
            b'a'..=b'z' | b'0'..=b'9' if any => hump += 1,
            _ => return false,
        }
    }
    any && hump >= 3
}

/// Whether the character in front makes `<` or `[` a type argument or an index. Names of source code are not
/// written in Chinese, Japanese and Korean, which begin here.
fn follows_identifier(before: Option<char>) -> bool {
    before.is_some_and(|c| c.is_alphanumeric() && c < '\u{2e80}' || matches!(c, '_' | ')' | ']' | ':'))
}

/// The folded character that ends at `end`, escaped or not, and where it starts.
pub(crate) fn folded_before(text: &str, end: usize) -> (u8, usize) {
    /// Longer than the longest escape, `&amp;amp;#x0003c;`.
    const MAX_SPELLING: usize = 24;
    let Some((last, c)) = text[..end].char_indices().next_back() else { return (END, 0) };
    if c == ';' || c.is_ascii_alphanumeric() || c == '}' {
        let from = text.floor_char_boundary(end.saturating_sub(MAX_SPELLING));
        let mut units = Vec::new();
        // The earliest start gives all of it: `&amp;lt;` rather than `&lt;`.
        for start in from..last {
            if matches!(text.as_bytes()[start], b'&' | b'\\' | b'%') {
                let mut window = Window::new(&text[..end], start, &mut units);
                let byte = window.get(0);
                if window.get(1) == END && byte != END && window.end_of(0) == end {
                    return (byte, start);
                }
            }
        }
    }
    match fold(c) {
        Folded::One(byte) => (byte, last),
        _ => (OTHER, last),
    }
}
