//! Forms that parsers take at the start of a line (turns, the steps of a ReAct loop), headings of instruction
//! formats, and fences whose content a runtime executes.

use super::{Ending, Name, Verdict};
use crate::names::{self, Strength};
use crate::skeleton::{END, FAR, Window};
use crate::tally::Family;

/// Who speaks, in a line such as `User: …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Human,
    Assistant,
    System,
    User,
}

/// A step of a ReAct loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum React {
    /// `Action:`, also a word of everyday minutes: it takes an input behind it.
    Action,
    /// `Action Input:`, which nobody else writes.
    Input,
    /// `Observation:`, `Thought:`, `Final Answer:`: they count beside a step that does.
    Other,
}

/// What stands at the start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStart {
    Nothing,
    /// A turn; a mark would go to this offset, in front of the colon.
    Turn(Role, usize),
    /// A step of a ReAct loop; likewise.
    React(React, usize),
    /// `>>>name` alone on its line: a mark goes to this offset.
    Marker(usize),
}

/// The words of a line's start, without the white space inside.
const WORDS: [&[u8]; 9] = [
    b"human",
    b"assistant",
    b"system",
    b"user",
    b"action",
    b"actioninput",
    b"observation",
    b"thought",
    b"finalanswer",
];
/// Longest of [`WORDS`].
const MAX_WORD: usize = 11;

/// Reads the start of a line. White space inside the words is ignored: it is no part of them in any spelling.
pub(crate) fn line_start(window: &mut Window<'_, '_>) -> LineStart {
    let mut start = 0;
    while window.get(start) == b' ' {
        start += 1;
    }
    if window.get(start) == b'>' {
        return marker(window, start);
    }
    let mut word = [0u8; MAX_WORD];
    let (mut len, mut index, mut last) = (0, start, start);
    loop {
        match window.get(index) {
            b' ' | b'\n' if len > 0 => {}
            b':' if len > 0 => break,
            byte if len < MAX_WORD => {
                word[len] = byte;
                (len, last) = (len + 1, index);
                if !WORDS.iter().any(|known| known.starts_with(&word[..len])) {
                    return LineStart::Nothing;
                }
            }
            _ => return LineStart::Nothing,
        }
        index += 1;
    }
    let at = window.end_of(last);
    match &word[..len] {
        b"human" => LineStart::Turn(Role::Human, at),
        b"assistant" => LineStart::Turn(Role::Assistant, at),
        b"system" => LineStart::Turn(Role::System, at),
        b"user" => LineStart::Turn(Role::User, at),
        b"action" => LineStart::React(React::Action, at),
        b"actioninput" => LineStart::React(React::Input, at),
        b"observation" | b"thought" | b"finalanswer" => LineStart::React(React::Other, at),
        _ => LineStart::Nothing,
    }
}

/// `>>>name` and nothing else on the line. A Python prompt has a space or an expression there.
fn marker(window: &mut Window<'_, '_>, start: usize) -> LineStart {
    if window.get(start + 1) != b'>'
        || window.get(start + 2) != b'>'
        || !window.get(start + 3).is_ascii_lowercase()
    {
        return LineStart::Nothing;
    }
    let at = window.end_of(start + 2);
    let mut index = start + 3;
    loop {
        match window.get(index) {
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') => index += 1,
            b'\n' | END => return LineStart::Marker(at),
            _ => return LineStart::Nothing,
        }
    }
}

/// Judges `##` and more: `### Instruction`, and the other headings of instruction formats with their colon.
pub(crate) fn heading(window: &mut Window<'_, '_>, ending: Ending) -> Verdict {
    let mut index = 1;
    while window.get(index) == b'#' {
        index += 1;
    }
    if index < 2 {
        return Verdict::Clean;
    }
    let at = window.end_of(index - 1);
    let mark = Verdict::Mark { at, family: Family::Turn };
    let start = window.skip_space(index);
    let tight = Name::read(window, start, false);
    let next = window.get(tight.next);
    if tight.as_str() == "instruction" && matches!(next, b':' | b'\n' | FAR) {
        return mark;
    }
    let name = Name::read(window, start, true);
    let colon = window.skip_space(name.next);
    let word = matches!(
        name.as_str(),
        "instruction" | "instructions" | "response" | "assistant" | "human" | "user" | "system"
    );
    match window.get(colon) {
        b':' if word => mark,
        END if ending == Ending::Open && name.len >= 4 && "instruction".starts_with(name.as_str()) => mark,
        _ => Verdict::Clean,
    }
}

/// Judges three and more backticks: a language that names tool code, or any block right behind `Action:`.
pub(crate) fn fence(window: &mut Window<'_, '_>, ending: Ending) -> Verdict {
    let mut index = 1;
    while window.get(index) == b'`' {
        index += 1;
    }
    let open = ending == Ending::Open;
    if index < 3 {
        return if open && window.get(index) == END && index == 2 {
            Verdict::Mark { at: window.end_of(index - 1), family: Family::Fence }
        } else {
            Verdict::Clean
        };
    }
    let at = window.end_of(index - 1);
    let mark = Verdict::Mark { at, family: Family::Fence };
    let start = window.skip_space(index);
    let first = window.get(start);
    if (first.is_ascii_alphanumeric() || matches!(first, b'{' | b'['))
        && follows_action(window.text, window.from)
    {
        return mark;
    }
    let tight = Name::read(window, start, false);
    let loose = Name::read(window, start, true);
    let executed = |name: &Name| names::tag(name.as_str()) == Strength::Core && !name.as_str().contains('-');
    if ["tool_code", "tool_output", "tool_call"].iter().any(|begin| tight.as_str().starts_with(begin))
        || executed(&tight) && matches!(window.get(tight.next), b' ' | b'\n' | END)
        || loose.spaced && ["tool_code", "tool_output"].iter().any(|begin| loose.as_str().starts_with(begin))
        || open && window.get(tight.next) == END && tight.as_str().starts_with("tool")
        || open && window.get(tight.next) == END && tight.len > 0 && "tool".starts_with(tight.as_str())
    {
        return mark;
    }
    Verdict::Clean
}

/// Whether `Action:` stands in front, white space aside.
fn follows_action(text: &str, at: usize) -> bool {
    const ACTION_REVERSED: &[u8] = b":noitca";
    /// Characters to look back over; the word and some white space.
    const MAX_BACK: usize = 32;
    let mut wanted = ACTION_REVERSED.iter();
    for c in text[..at].chars().rev().take(MAX_BACK) {
        match crate::fold::fold(c) {
            crate::fold::Folded::One(b' ' | b'\n') | crate::fold::Folded::Nothing => {}
            crate::fold::Folded::One(byte) if wanted.as_slice().first() == Some(&byte) => {
                wanted.next();
                if wanted.as_slice().is_empty() {
                    return true;
                }
            }
            _ if crate::invisible::is_invisible(c) => {}
            _ => return false,
        }
    }
    false
}
