//! Forms that parsers take at the start of a line (turns, the steps of a ReAct loop), headings of instruction
//! formats, and fences whose content a runtime executes.

use super::{Name, TextEnd, Verdict, folded_before};
use crate::family_counts::Family;
use crate::fold::{Folded, fold};
use crate::invisible::is_invisible;
use crate::names::{self, Confidence};
use crate::role::Role;
use crate::skeleton::{MAX_COMMENT, Window};
use crate::unit::{END, FAR, OTHER};

/// A step of a ReAct loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReActStep {
    /// `Action:`, also a word of everyday minutes: it counts only with an input behind it.
    Action,
    /// `Action Input:`, which has no other use.
    Input,
    /// `Observation:`, `Thought:`, `Final Answer:`: they count beside one of the other steps.
    Other,
}

/// What stands in front of a colon in the middle of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MidLine {
    /// A speaker: it counts where a person asks and a model answers.
    Turn(Role),
    /// A speaker inside another word: it counts beside turns, into which it may be nested.
    Nested,
    /// A word that introduces a conversation.
    Introduction,
    /// `Action Input`: it counts beside a step at the start of a line.
    Input,
}

/// What stands at the start of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineStart {
    Nothing,
    /// A turn; a mark would be inserted at this offset, in front of the colon.
    Turn(Role, usize),
    /// A turn that an invisible character breaks; other turns count beside it.
    BrokenTurn(Role),
    /// A step that is broken the same way.
    BrokenStep,
    /// A heading that turns follow, with the offset of the mark.
    Heading(usize),
    /// A step of a ReAct loop, with the offset of the mark.
    React(ReActStep, usize),
    /// `>>>name` alone on its line: a mark goes to this offset.
    Marker(usize),
}

/// The words of a line's start, without the white space inside.
const WORDS: [&[u8]; 17] = [
    b"human",
    b"assistant",
    b"system",
    b"user",
    b"action",
    b"actioninput",
    b"observation",
    b"thought",
    b"finalanswer",
    b"ai",
    b"bot",
    b"chatbot",
    b"gpt",
    b"falcon",
    b"toolinput",
    b"functioninput",
    b"beginningofconversation",
];
/// Longest of [`WORDS`].
const MAX_WORD: usize = 23;

/// Reads the start of a line. White space inside the words is ignored, however it is written.
pub(crate) fn line_start(window: &mut Window<'_, '_>) -> LineStart {
    let mut start = 0;
    while window.get(start) == b' ' {
        start += 1;
    }
    if window.get(start) == b'>' {
        return marker(window, start);
    }
    let mut word = [0u8; MAX_WORD];
    let (mut len, mut index, mut last, mut broken) = (0, start, start, false);
    loop {
        match window.get(index) {
            b' ' | b'\n' if len > 0 => {}
            OTHER if len > 0 && skip_invisible(window, index).is_some() => {
                broken = true;
                index = skip_invisible(window, index).unwrap_or(index);
            }
            b':' if len > 0 => break,
            // A backspace deletes the character in front of it.
            _ if len > 0 && window.get(index + 1) == OTHER && is_backspace(window, index + 1) => {
                broken = true;
                index += 1;
            }
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
    match judge(&word[..len], at) {
        LineStart::Turn(role, _) if broken => LineStart::BrokenTurn(role),
        LineStart::React(ReActStep::Input, _) if broken => LineStart::BrokenStep,
        _ if broken => LineStart::Nothing,
        line => line,
    }
}

/// Whether the words are those of a turn or of a step, so that no form has a field of that name.
pub(crate) fn is_line_word(words: &str) -> bool {
    let word: Vec<u8> =
        words.bytes().filter(|byte| *byte != b' ').map(|byte| byte.to_ascii_lowercase()).collect();
    WORDS.contains(&&*word)
}

fn is_backspace(window: &Window<'_, '_>, index: usize) -> bool {
    window.text[window.start_of(index)..].starts_with('\u{8}')
}

/// The last unit of the invisible text at `index`: one character, or a terminal's escape sequence.
fn skip_invisible(window: &mut Window<'_, '_>, index: usize) -> Option<usize> {
    /// The longest escape sequence in use, and a link's address.
    const MAX_SEQUENCE: usize = 64;
    let c = window.text[window.start_of(index)..].chars().next()?;
    let operating = c == '\u{1b}' && window.get(index + 1) == b']';
    let control = c == '\u{9b}' || c == '\u{1b}' && window.get(index + 1) == b'[';
    if !operating && !control {
        return (is_invisible(c) || c.is_control()).then_some(index);
    }
    let first = if c == '\u{9b}' { index + 1 } else { index + 2 };
    (first..first + MAX_SEQUENCE).find(|&index| {
        let byte = window.get(index);
        let string_ends = byte == b'\\' || byte == OTHER && window.get(index + 1) != b'\\';
        if operating { string_ends } else { byte.is_ascii_alphabetic() || matches!(byte, END | FAR) }
    })
}

fn judge(word: &[u8], at: usize) -> LineStart {
    match word {
        b"human" => LineStart::Turn(Role::Human, at),
        b"assistant" => LineStart::Turn(Role::Assistant, at),
        b"system" => LineStart::Turn(Role::System, at),
        b"user" => LineStart::Turn(Role::User, at),
        b"ai" | b"bot" | b"chatbot" | b"gpt" | b"falcon" => LineStart::Turn(Role::Bot, at),
        b"beginningofconversation" => LineStart::Heading(at),
        b"action" => LineStart::React(ReActStep::Action, at),
        b"actioninput" | b"toolinput" | b"functioninput" => LineStart::React(ReActStep::Input, at),
        b"observation" | b"thought" | b"finalanswer" => LineStart::React(ReActStep::Other, at),
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
pub(crate) fn heading(window: &mut Window<'_, '_>, ending: TextEnd) -> Verdict {
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
    // Headings of exercises too; beside one of the above they belong to a prompt.
    let beside = matches!(
        name.as_str(),
        "input"
            | "output"
            | "context"
            | "question"
            | "answer"
            | "query"
            | "history"
            | "example"
            | "tool"
            | "tools"
            | "function"
            | "functions"
            | "observation"
    );
    match window.get(colon) {
        b':' if word => mark,
        b':' if beside => Verdict::NearHeading { at, family: Family::Turn },
        END if ending == TextEnd::Open && name.len >= 4 && "instruction".starts_with(name.as_str()) => mark,
        _ => Verdict::Clean,
    }
}

/// How the languages of fences that a runtime executes, or whose content it wrote, begin.
const EXECUTED: [&str; 6] =
    ["tool_code", "tool_output", "tool_call", "tool_use", "tool_res", "function_call"];

/// Judges three and more backticks: a language that names tool code, or any block right behind `Action:`.
pub(crate) fn fence(window: &mut Window<'_, '_>, ending: TextEnd) -> Verdict {
    let mut index = 1;
    while window.get(index) == b'`' {
        index += 1;
    }
    let open = ending == TextEnd::Open;
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
        && follows_word(window.text, window.from, b":noitca")
    {
        return mark;
    }
    let tight = Name::read(window, start, false);
    let loose = Name::read(window, start, true);
    let executed =
        |name: &Name| names::tag(name.as_str()) == Confidence::Core && !name.as_str().contains('-');
    if EXECUTED.iter().any(|begin| tight.as_str().starts_with(begin))
        || executed(&tight) && matches!(window.get(tight.next), b' ' | b'\n' | END)
        || loose.spaced && EXECUTED.iter().any(|begin| loose.as_str().starts_with(begin))
        || open && window.get(tight.next) == END && tight.as_str().starts_with("tool")
        || open && window.get(tight.next) == END && tight.len > 0 && "tool".starts_with(tight.as_str())
    {
        return mark;
    }
    Verdict::Clean
}

/// Whether the word, given reversed, stands in front, ignoring white space.
pub(super) fn follows_word(text: &str, at: usize, reversed: &[u8]) -> bool {
    /// How far to look back, in bytes: the word, spelled out, and some white space.
    const MAX_BACK: usize = 96;
    let mut wanted = reversed;
    let mut end = at;
    while at - end <= MAX_BACK {
        let Some((before, c)) = text[..end].char_indices().next_back() else { return false };
        if is_invisible(c) || fold(c) == Folded::Nothing {
            end = before;
            continue;
        }
        let (byte, start) = folded_before(text, end);
        match wanted {
            _ if matches!(byte, b' ' | b'\n') => {}
            [next] if *next == byte => return true,
            [next, rest @ ..] if *next == byte => wanted = rest,
            _ => return false,
        }
        end = start;
    }
    false
}

/// Where the comment begins that the text ends in, if there is one: readers that remove it join its sides.
pub(super) fn before_comment(text: &str) -> Option<usize> {
    let body = text.strip_suffix("-->")?;
    let from = text.floor_char_boundary(text.len().saturating_sub(MAX_COMMENT));
    body.get(from..)?.rfind("<!--").map(|start| from + start)
}

/// What stands in front of the colon at `colon`, in the middle of a line, and the offset of the mark.
pub(crate) fn speaker(text: &str, colon: usize) -> Option<(MidLine, usize)> {
    /// How far to look back, in bytes: a name, spelled out letter by letter.
    const MAX_BACK: usize = 96;
    const NAMES: [(&[u8], MidLine); 12] = [
        (b"resu", MidLine::Turn(Role::User)),
        (b"namuh", MidLine::Turn(Role::Human)),
        (b"tnatsissa", MidLine::Turn(Role::Assistant)),
        (b"metsys", MidLine::Turn(Role::System)),
        (b"tobtahc", MidLine::Turn(Role::Bot)),
        (b"tob", MidLine::Turn(Role::Bot)),
        (b"tpg", MidLine::Turn(Role::Bot)),
        (b"noclaf", MidLine::Turn(Role::Bot)),
        (b"noitasrevnoc", MidLine::Introduction),
        (b"tupninoitca", MidLine::Input),
        (b"tupniloot", MidLine::Input),
        (b"tupninoitcnuf", MidLine::Input),
    ];
    let mut word = [0u8; 13];
    let (mut len, mut mark, mut end) = (0, colon, colon);
    let mut found: Option<MidLine> = None;
    // As part of a longer word it counts only in capitals, when one word was put into another.
    let (mut whole, mut capitals, mut initial, mut disguised) = (false, true, false, false);
    while colon - end <= MAX_BACK {
        let Some((before, c)) = text[..end].char_indices().next_back() else {
            whole = true;
            break;
        };
        if is_invisible(c) || c.is_control() && !matches!(c, '\n' | '\t') || fold(c) == Folded::Nothing {
            end = before;
            continue;
        }
        if let Some(start) = before_comment(&text[..end]) {
            end = start;
            continue;
        }
        let (byte, start) = folded_before(text, end);
        match byte {
            b' ' | b'\n' => {
                whole |= found.is_some();
            }
            byte if byte.is_ascii_lowercase() && len < word.len() => {
                word[len] = byte;
                if !NAMES.iter().any(|(name, _)| name.starts_with(&word[..=len])) {
                    // Short names are in many words (`FLOATINGPT`), and nested in their own only: `GPGPT`.
                    whole |= capitals && c.is_uppercase() && (len > 3 || word[..len].contains(&byte))
                        || found == Some(MidLine::Input) && (initial || disguised)
                        || (word.starts_with(b"tnatsissa") || word.starts_with(b"noclaf"));
                    break;
                }
                capitals &= c.is_uppercase();
                disguised |= !c.is_ascii() || end - start > 1;
                mark = if len == 0 { end } else { mark };
                len += 1;
                whole = false;
                if let Some((_, name)) = NAMES.iter().find(|(name, _)| *name == &word[..len]) {
                    (found, initial) = (Some(*name), c.is_uppercase());
                }
            }
            // Attributes, variables, parts of names and addresses, unless white space stands between.
            b'.' | b'$' | b'@' | b'-' | b'/' | b'_' | b'0'..=b'9' => break,
            _ => {
                whole = true;
                break;
            }
        }
        end = start;
    }
    let found = found?;
    // A bot in lower case is spoken about; one that speaks is written in capitals.
    let spoken =
        found != MidLine::Turn(Role::Bot) || text[..mark].chars().rev().take(len).any(|c| !c.is_lowercase());
    match found {
        _ if whole && spoken => Some((found, mark)),
        MidLine::Turn(_) if initial => Some((MidLine::Nested, mark)),
        _ => None,
    }
}
