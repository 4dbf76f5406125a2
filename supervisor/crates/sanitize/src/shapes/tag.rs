//! Tags: `<tool_call>`, `</think>`, `<ns:invoke name=…>`, `<function=…>`, `<|im_start|>`.

use super::{
    Ending, Name, Verdict, attribute, follows_identifier, is_name, is_type_name, payload, unfinished,
};
use crate::names::{self, Strength};
use crate::skeleton::{END, OTHER, Window};
use crate::tally::Family;

/// Judges a `<`. `before` is the character in front of it.
pub(crate) fn tag(window: &mut Window<'_, '_>, before: Option<char>, ending: Ending) -> Verdict {
    let at = window.end_of(0);
    if window.get(1) == b']' && before.is_some_and(|c| crate::fold::fold(c) == crate::fold::Folded::One(b']'))
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
        END if ending == Ending::Open => Verdict::Mark { at, family: Family::Tag },
        b'|' => bar(window, at, index, spaced, ending),
        byte if is_name(byte) || byte == b':' => named(window, at, index, closer, before, ending),
        _ => Verdict::Clean,
    }
}

fn named(
    window: &mut Window<'_, '_>,
    at: usize,
    start: usize,
    closer: bool,
    before: Option<char>,
    ending: Ending,
) -> Verdict {
    let mark = Verdict::Mark { at, family: Family::Tag };
    let first = start;
    let (name, start) = behind_namespaces(window, start, false);
    let mut strength = names::tag(name.as_str());
    if closer && name.as_str() == "s" {
        strength = Strength::Strong;
    }
    let next = window.skip_space(name.next);
    let byte = window.get(next);
    let self_closing = byte == b'/';
    let behind = if self_closing { window.skip_space(next + 1) } else { next };
    let last = window.get(behind);
    if unfinished(last, &name, ending) {
        return mark;
    }
    if byte == b'|' && name.len > 2 && window.get(next + 1) == b'>' {
        return Verdict::Mark { at, family: Family::BarTag };
    }
    let closed = last == b'>';
    let type_argument = closed && !closer && !self_closing && (follows_identifier(before) || start > first);
    if strength != Strength::Core && type_argument && name.next > start {
        let spelled = &window.text[window.start_of(start)..window.end_of(name.next - 1)];
        if is_type_name(spelled) {
            return Verdict::Clean;
        }
    }
    match strength {
        Strength::Core | Strength::Strong => {
            if closed
                || byte == b'='
                || attribute(window, next, ending)
                || (strength == Strength::Core && start == 1 && payload(window, next))
            {
                return mark;
            }
        }
        Strength::Weak => {
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
            if (closed || attributed) && !(code && name.len == 1) {
                return Verdict::Opener { at, family: Family::Tag, key };
            }
        }
        Strength::None => {}
    }
    if torn(window, start, ending) { mark } else { Verdict::Clean }
}

/// Whether a name with white space inside is one that nothing else is called: `<to ol_call>`, `<func tion=`.
fn torn(window: &mut Window<'_, '_>, start: usize, ending: Ending) -> bool {
    let (name, _) = behind_namespaces(window, start, true);
    if !name.spaced {
        return false;
    }
    let next = window.skip_space(name.next);
    let assigned = window.get(next) == b'=';
    let closed = match window.get(next) {
        b'>' | b'=' => true,
        b'/' => true,
        END => ending == Ending::Open && name.as_str().contains('_'),
        _ => false,
    };
    if !closed {
        return false;
    }
    let spelled = name.as_str();
    let spelled = if assigned { spelled.strip_suffix("name").unwrap_or(spelled) } else { spelled };
    let spelled = spelled.trim_matches('_');
    if spelled.contains('_') {
        return names::tag(spelled) == Strength::Core;
    }
    matches!(spelled, "invoke" | "assistant" | "human" | "think" | "sys")
        || assigned && matches!(spelled, "function" | "parameter" | "tool")
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

/// `<|name|>` and what may become it; `<|` as an operator and `x < |y|` are left alone.
fn bar(window: &mut Window<'_, '_>, at: usize, bar: usize, spaced: bool, ending: Ending) -> Verdict {
    let mark = Verdict::Mark { at, family: Family::BarTag };
    let mut index = bar + 1;
    if window.get(index) == b'|' {
        index += 1;
    }
    let tight = window.get(index);
    let quoted = tight == b'"' && window.get(index + 1) == b'|' && window.get(index + 2) == b'>';
    if !spaced
        && (quoted
            || is_name(tight) && !tight.is_ascii_digit()
            || matches!(tight, b'/' | OTHER)
            || tight == END && ending == Ending::Open)
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
        (b'|', b'>') if name.len > 0 && (spaced || names::speaks(name.as_str())) => mark,
        (END, _) | (b'|', END) if ending == Ending::Open && names::may_become(name.as_str()) => mark,
        _ => Verdict::Clean,
    }
}

/// Judges `|>` behind a name that no opener introduced, as when a text begins in the middle of a token.
/// `bar` is the offset of the `|`.
pub(crate) fn closing_bar(text: &str, bar: usize) -> Verdict {
    let before = &text.as_bytes()[bar.saturating_sub(super::MAX_NAME)..bar];
    let name_len = before.iter().rev().take_while(|&&byte| is_name(byte)).count();
    let name = text[bar - name_len..bar].to_ascii_lowercase();
    let opened = text[..bar - name_len]
        .chars()
        .next_back()
        .is_some_and(|c| crate::fold::fold(c) == crate::fold::Folded::One(b'|'));
    if opened || !name.contains('_') || names::tag(&name) == Strength::None {
        return Verdict::Clean;
    }
    Verdict::Mark { at: bar + 1, family: Family::BarTag }
}
