//! Tags: `<tool_call>`, `</think>`, `<ns:invoke name=…>`, `<function=…>`, `<|im_start|>`.

use super::{
    Name, TextEnd, Verdict, attribute, folded_before, follows_identifier, is_name, is_type_name,
    is_unfinished, payload,
};
use crate::family_counts::Family;
use crate::fold::{Folded, SYMBOL, fold};
use crate::invisible::is_invisible;
use crate::names::{self, Confidence};
use crate::skeleton::Window;
use crate::unit::{END, OTHER};

/// Judges a `<`. `before` is the character in front of it.
pub(crate) fn tag(window: &mut Window<'_, '_>, before: Option<char>, ending: TextEnd) -> Verdict {
    let at = window.end_of(0);
    let last = |window: &Window<'_, '_>| {
        // Backslashes quote the angle, and are dropped by the reader.
        let passed = |c: char| c.is_whitespace() || is_invisible(c) || c == '\\';
        let text = window.text[..window.from].trim_end_matches(passed);
        folded_before(text, text.len()).0
    };
    let first = window.skip_space(1);
    // At the very beginning, the bracket may belong to text in front of it.
    if window.get(first) == b']' && matches!(last(window), b']' | END) {
        return Verdict::Mark { at, family: Family::Sentinel };
    }
    // Behind a space it is a shell operator or a shift.
    let apart = matches!(before, Some(' ' | '\n' | '<'));
    if !apart
        && window.get(1) == b'<'
        && window.get(2) != b'<'
        && closes_reversed_tag(window.text, window.from)
    {
        return Verdict::Mark { at, family: Family::Sentinel };
    }
    let mut index = window.skip_space(1);
    let spaced = index > 1;
    let closer = window.get(index) == b'/';
    if closer {
        index = window.skip_space(index + 1);
    }
    match window.get(index) {
        END if ending == TextEnd::Open => Verdict::Mark { at, family: Family::Tag },
        b'|' => bar(window, at, index, spaced, ending),
        byte if is_name(byte) || byte == b':' => judge_named(window, at, index, closer, before, ending),
        _ => Verdict::Clean,
    }
}

fn judge_named(
    window: &mut Window<'_, '_>,
    at: usize,
    start: usize,
    closer: bool,
    before: Option<char>,
    ending: TextEnd,
) -> Verdict {
    let mark = Verdict::Mark { at, family: Family::Tag };
    let first = start;
    let (name, start) = behind_namespaces(window, start, false);
    let mut strength = names::tag(name.as_str());
    if closer && name.as_str() == "s" {
        strength = Confidence::Strong;
    }
    let next = window.skip_space(name.next);
    let byte = window.get(next);
    let self_closing = byte == b'/';
    let behind = if self_closing { window.skip_space(next + 1) } else { next };
    let last = window.get(behind);
    if is_unfinished(last, &name, ending) {
        return mark;
    }
    let angle = window.skip_space(next + 1);
    let ends = window.get(angle) == b'>' || window.get(angle) == END && ending == TextEnd::Open;
    if byte == b'|' && name.len > 2 && ends {
        return Verdict::Mark { at, family: Family::BarTag };
    }
    let closed = last == b'>';
    // `<functionname=`: the space in front of the attribute is all that is missing.
    if byte == b'='
        && name.as_str().strip_suffix("name").is_some_and(|stem| names::tag(stem) != Confidence::None)
    {
        return mark;
    }
    // Doxygen's element: the space is missing in front of an attribute only.
    if closed && matches!(name.as_str(), "parametername" | "invokename") {
        return Verdict::Clean;
    }
    // An unfinished closer may still turn out to be in a namespace.
    if closer && last == END && ending == TextEnd::Open {
        return mark;
    }
    // The name of a group in a regular expression.
    if name.as_str() == "sep" && window.text[..window.from].ends_with("(?P") {
        return Verdict::Clean;
    }
    if name.as_str() == "role" {
        return if closed && !closer && names_speaker(window, behind + 1) { mark } else { Verdict::Clean };
    }
    if closed && !self_closing && is_field_name(name.as_str()) {
        let key = name.key();
        if closer {
            return Verdict::Closer { at, family: Family::Tag, key };
        }
        if is_field(window, behind + 1, &name) {
            return Verdict::Field { key };
        }
    }
    let type_argument = closed && !closer && !self_closing && (follows_identifier(before) || start > first);
    if strength != Confidence::Core && type_argument && name.next > start {
        let spelled = &window.text[window.start_of(start)..window.end_of(name.next - 1)];
        if is_type_name(spelled) {
            return Verdict::Clean;
        }
    }
    match strength {
        Confidence::Core | Confidence::Strong => {
            if closed
                && !closer
                && let Some(role) = names::role(name.as_str())
            {
                return Verdict::Speaker { at, family: Family::Tag, role };
            }
            if closed
                || byte == b'='
                || attribute(window, next, ending)
                || (strength == Confidence::Core && start == 1 && payload(window, next))
            {
                return mark;
            }
        }
        Confidence::Weak => {
            // A type argument, or the name of a group in a regular expression.
            let code = before == Some('?') || follows_identifier(before);
            let calls = matches!(name.as_str(), "tool" | "function" | "parameter" | "call");
            let key = name.key();
            if closer && closed {
                return Verdict::Closer { at, family: Family::Tag, key };
            }
            if byte == b'=' && calls
                || closed && !self_closing && !code && name.len > 1 && payload(window, next + 1)
            {
                return mark;
            }
            let attributed = attribute(window, next, ending);
            if attributed && calls {
                return mark;
            }
            // `<tool_ca ll=f>`: what looks like an attribute is the rest of the name.
            if attributed {
                let split = split_name(window, at, start, closer, ending);
                if matches!(split, Verdict::Mark { .. }) {
                    return split;
                }
            }
            if (closed || attributed) && !(code && name.len == 1) {
                let role = names::role(name.as_str()).filter(|_| closed && !self_closing);
                return Verdict::Opener { at, family: Family::Tag, key, role };
            }
        }
        Confidence::None => {}
    }
    split_name(window, at, start, closer, ending)
}

/// Whether the content of an element is only the name of a speaker: `<role>SYSTEM</role>`.
fn names_speaker(window: &mut Window<'_, '_>, index: usize) -> bool {
    let index = window.skip_space(index);
    let name = Name::read(window, index, true);
    let next = window.skip_space(name.next);
    let speaker = names::role(name.as_str()).is_some() && !name.as_str().contains(['_', '-'])
        || matches!(name.as_str(), "tool" | "observation" | "developer");
    speaker && matches!(window.get(next), b'<' | END)
}

/// Names that records have too: a POM has a `<system>` and `<arguments>`, a list of accounts has each
/// `<user>`.
fn is_field_name(name: &str) -> bool {
    matches!(name, "system" | "user" | "parameters" | "arguments")
}

/// Whether the content of the element, which begins at `index`, is one of a record: a single word, which
/// instructs no model, in front of another ordinary element; or ordinary elements.
fn is_field(window: &mut Window<'_, '_>, index: usize, name: &Name) -> bool {
    let index = window.skip_space(index);
    let word = Name::read(window, index, false);
    if word.len == 0 {
        return begins_ordinary_element(window, index, false);
    }
    if window.get(word.next) != b'<' || window.get(word.next + 1) != b'/' {
        return false;
    }
    let closer = Name::read(window, word.next + 2, false);
    if closer.as_str() != name.as_str() || window.get(closer.next) != b'>' {
        return false;
    }
    let next = window.skip_space(closer.next + 1);
    begins_ordinary_element(window, next, true)
}

/// Whether a tag whose name is not about turns or tools stands at `index`.
fn begins_ordinary_element(window: &mut Window<'_, '_>, index: usize, or_closer: bool) -> bool {
    let closer = or_closer && window.get(index + 1) == b'/';
    let start = index + 1 + usize::from(closer);
    let name = Name::read(window, start, false);
    let ends = matches!(window.get(name.next), b'>' | b' ' | b'/' | b'\n');
    window.get(index) == b'<'
        && name.len > 1
        && ends
        && (names::tag(name.as_str()) == Confidence::None
            || matches!(name.as_str(), "parameters" | "arguments"))
}

/// Whether the `<<` at `at` closes `>>NAME`. Shifts of source code are written in lower case.
fn closes_reversed_tag(text: &str, at: usize) -> bool {
    /// How far to look back, in bytes: the longest name, spelled out.
    const MAX_BACK: usize = 160;
    let (mut letters, mut capital, mut angles) = (0, false, 0);
    // Of a run of backslashes the last one is checked; the others quote it.
    let mut end = text[..at].trim_end_matches('\\').len();
    while at - end <= MAX_BACK {
        let Some((before, c)) = text[..end].char_indices().next_back() else { return false };
        if is_invisible(c) || fold(c) == Folded::Nothing {
            end = before;
            continue;
        }
        let (byte, start) = folded_before(text, end);
        match byte {
            b' ' | b'\n' | b'_' => {}
            b'>' if letters >= 4 && capital => {
                angles += 1;
                if angles == 2 {
                    return true;
                }
            }
            byte if byte.is_ascii_lowercase() && angles == 0 => {
                letters += 1;
                capital |= !c.is_ascii_lowercase();
            }
            _ => return false,
        }
        end = start;
    }
    false
}

/// The attributes that calls begin with.
const ATTRIBUTES: [&str; 4] = ["name", "id", "tool", "type"];

/// Checks a name with white space inside: `<to ol_call>`, `<func tion=`, `<eo h>`. No real element is written
/// so.
fn split_name(
    window: &mut Window<'_, '_>,
    at: usize,
    start: usize,
    closer: bool,
    ending: TextEnd,
) -> Verdict {
    let mark = Verdict::Mark { at, family: Family::Tag };
    let (name, _) = behind_namespaces(window, start, true);
    if !name.spaced {
        return Verdict::Clean;
    }
    let next = window.skip_space(name.next);
    let assigned = match window.get(next) {
        b'|' if names::names_turn_or_tool(name.as_str()) => {
            let angle = window.skip_space(next + 1);
            if window.get(angle) == b'>' {
                return Verdict::Mark { at, family: Family::BarTag };
            }
            return Verdict::Clean;
        }
        b'=' => true,
        b'>' | b'/' => false,
        END if ending == TextEnd::Open
            && (name.as_str().contains('_') || name.len > 3 && names::may_become_name(name.as_str())) =>
        {
            return mark;
        }
        _ => return Verdict::Clean,
    };
    let spelled = name.as_str();
    // `<inv oke id=`: white space counts nowhere, so the attribute's name is at the end of the tag's.
    let attributed = ATTRIBUTES.iter().find_map(|attribute| spelled.strip_suffix(attribute));
    let strips = assigned && (spelled.ends_with("name") || names::tag(spelled) == Confidence::None);
    let spelled = attributed.filter(|_| strips).unwrap_or(spelled);
    let key = name.key();
    let strength = names::tag(spelled);
    if strength == Confidence::Strong
        && !assigned
        && !closer
        && let Some(role) = names::role(spelled)
    {
        return Verdict::Speaker { at, family: Family::Tag, role };
    }
    match strength {
        Confidence::Core => mark,
        Confidence::Strong
            if !assigned || matches!(spelled, "invoke" | "assistant" | "human" | "think" | "sys") =>
        {
            mark
        }
        _ if assigned && matches!(spelled, "function" | "parameter" | "tool") => mark,
        Confidence::Weak if assigned || spelled.len() < 3 => Verdict::Clean,
        Confidence::Weak if closer => Verdict::Closer { at, family: Family::Tag, key },
        Confidence::Weak => Verdict::Opener { at, family: Family::Tag, key, role: names::role(spelled) },
        _ => Verdict::Clean,
    }
}

/// The name behind any namespaces, and where it starts.
fn behind_namespaces(window: &mut Window<'_, '_>, start: usize, loose: bool) -> (Name, usize) {
    let mut start = start;
    let mut name = Name::read(window, start, loose);
    loop {
        let colon = window.skip_space(name.next);
        if window.get(colon) != b':' || window.get(colon + 1) == b':' {
            return (name, start);
        }
        start = window.skip_space(colon + 1);
        let behind = Name::read(window, start, loose);
        name = Name { spaced: name.spaced || behind.spaced, ..behind };
    }
}

/// `<|name|>` and its beginnings; `<|` as an operator and `x < |y|` are left alone.
fn bar(window: &mut Window<'_, '_>, at: usize, bar: usize, spaced: bool, ending: TextEnd) -> Verdict {
    let mark = Verdict::Mark { at, family: Family::BarTag };
    let mut index = bar + 1;
    if window.get(index) == b'|' {
        index += 1;
    }
    let tight = window.get(index);
    let quoted = tight == b'"' && window.get(index + 1) == b'|' && window.get(index + 2) == b'>';
    if !spaced
        && (quoted
            || tight != END && begins_name(tight)
            || tight == b'/' && begins_name(window.get(index + 1))
            || matches!(tight, OTHER | SYMBOL)
            || tight == END && ending == TextEnd::Open)
    {
        return mark;
    }
    index = window.skip_space(index);
    if window.get(index) == b'/' {
        index = window.skip_space(index + 1);
    }
    let name = Name::read(window, index, true);
    let close = window.skip_space(name.next);
    let angle = window.skip_space(close + 1);
    match (window.get(close), window.get(angle)) {
        // `< |NAME|invoke`: a namespace.
        (b'|', byte) if name.len > 0 && is_name(byte) => {
            // `tool_call name=`, `tool_ca ll`.
            let named = [false, true].into_iter().any(|loose| {
                let inner = Name::read(window, angle, loose);
                let next = window.skip_space(inner.next);
                names::tag(inner.as_str()) != Confidence::None
                    && (window.get(next) == b'>' || attribute(window, next, ending))
            });
            if named { mark } else { Verdict::Clean }
        }
        (b'>', _) if names::names_turn_or_tool(name.as_str()) => mark,
        (b'|', b'>') if name.len > 0 && (spaced || names::names_turn_or_tool(name.as_str())) => mark,
        (END, _) | (b'|', END)
            if ending == TextEnd::Open && (name.len == 0 || names::may_become_name(name.as_str())) =>
        {
            mark
        }
        _ => Verdict::Clean,
    }
}

/// Whether a token's name may begin so. Lists of operators have `<|-` and `<|/`.
fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | OTHER | END)
}

/// Checks `|>` behind a name without an opener, as when a text begins in the middle of a token.
/// `bar` is the offset of the `|`.
pub(crate) fn closing_bar(text: &str, bar: usize) -> Verdict {
    let before = &text.as_bytes()[bar.saturating_sub(super::MAX_NAME)..bar];
    let name_len = before.iter().rev().take_while(|&&byte| is_name(byte)).count();
    let (front, name) = text[..bar].split_at(bar - name_len);
    let opened = front.chars().next_back().is_some_and(|c| fold(c) == Folded::One(b'|'));
    if opened || !name.contains('_') || names::tag(&name.to_ascii_lowercase()) == Confidence::None {
        return Verdict::Clean;
    }
    Verdict::Mark { at: bar + 1, family: Family::BarTag }
}
