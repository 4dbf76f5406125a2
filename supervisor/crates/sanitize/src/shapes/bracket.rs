//! Brackets: `[TOOL_CALLS]`, `[/INST]`, `[|assistant|]`, and Talon's own `[plugin_output]` and
//! `[structured]`.

use super::{
    Name, TextEnd, Verdict, attribute, folded_before, follows_identifier, is_name, is_type_name,
    is_unfinished, payload,
};
use crate::family_counts::Family;
use crate::fold::{Folded, SYMBOL, fold};
use crate::invisible::is_invisible;
use crate::names::{self, Confidence};
use crate::shapes::line::{before_comment, follows_word};
use crate::skeleton::Window;
use crate::unit::END;

/// Judges a `[`. `before` is the character in front of it.
pub(crate) fn bracket(window: &mut Window<'_, '_>, before: Option<char>, ending: TextEnd) -> Verdict {
    let at = window.end_of(0);
    let first = window.skip_space(1);
    let second = window.skip_space(first + 1);
    let opens = window.get(second) == b'[' || window.get(second) == END && ending == TextEnd::Open;
    if window.get(first) == b'>' && opens {
        return Verdict::Mark { at, family: Family::Sentinel };
    }
    if payload(window, 0) && follows_word(window.text, window.from, b"sloot")
        || follows_word(window.text, window.from, b"slootcnuf")
    {
        // In front of the bracket, which belongs to the payload.
        return Verdict::Mark { at: window.from, family: Family::Bracket };
    }
    let mut index = window.skip_space(1);
    if window.get(index) == b'|' {
        return bar(window, at, index, ending);
    }
    let closer = window.get(index) == b'/';
    if closer {
        index = window.skip_space(index + 1);
    }
    let first = window.get(index);
    if first == END && ending == TextEnd::Open {
        return Verdict::Mark { at, family: Family::Bracket };
    }
    if !is_name(first) {
        return Verdict::Clean;
    }
    let name = Name::read(window, index, false);
    let spelled = &window.text[window.start_of(index)..window.end_of(name.next.max(index + 1) - 1)];
    // Escaped text is not code, whatever its case.
    let lower_case = !spelled.contains(char::is_uppercase) && !spelled.contains(['&', '\\', '%']);
    let type_name = is_type_name(spelled);
    let loose = Name::read(window, index, true);
    let counted = loose.as_str().trim_end_matches(|c: char| c.is_ascii_digit());
    let close = window.skip_space(loose.next);
    // The turns of early chat models were counted: `[Round 1]`.
    if counted == "round" && counted.len() < loose.len && window.get(close) == b']' && loose.spaced {
        return Verdict::Mark { at, family: Family::Bracket };
    }
    let verdict = judge(window, at, &name, closer, NameStyle { before, lower_case, type_name }, ending);
    if verdict != Verdict::Clean {
        return verdict;
    }
    if banner(window, index, closer) {
        return Verdict::Mark { at, family: Family::Bracket };
    }
    let code = !closer && follows_identifier(before) && lower_case;
    split_name(window, at, index, closer, code)
}

/// How the name is written, which distinguishes an index or an attribute of a programming language from a
/// delimiter.
struct NameStyle {
    before: Option<char>,
    lower_case: bool,
    type_name: bool,
}

fn judge(
    window: &mut Window<'_, '_>,
    at: usize,
    name: &Name,
    closer: bool,
    written: NameStyle,
    ending: TextEnd,
) -> Verdict {
    let strength = names::bracket(name.as_str());
    let ours = name.as_str().starts_with("plugin_output") || name.as_str() == "structured";
    let family = if ours { Family::Envelope } else { Family::Bracket };
    let mark = Verdict::Mark { at, family };
    let next = window.skip_space(name.next);
    let byte = window.get(next);
    if is_unfinished(byte, name, ending) {
        return mark;
    }
    let code = !closer
        && !ours
        && (follows_identifier(written.before) && (written.lower_case || written.type_name)
            || matches!(written.before, Some('#' | '!')) && written.lower_case);
    match strength {
        Confidence::Core if written.type_name && code => Verdict::Clean,
        Confidence::Core => {
            let named = matches!(byte, b']' | b':' | b'=') || ours;
            if named || attribute(window, next, ending) { mark } else { Verdict::Clean }
        }
        // An index has no closer: `[/MODEL_SETTINGS]`.
        Confidence::None if byte == b']' && closer && !written.lower_case && name.as_str().contains('_') => {
            Verdict::Closer { at, family, key: name.key() }
        }
        Confidence::None
            if byte == b']' && !closer && !written.lower_case && !code && name.as_str().contains('_') =>
        {
            Verdict::Opener { at, family, key: name.key(), role: None }
        }
        // An index has no closer.
        Confidence::Strong if code && !names::is_reserved(name.as_str()) && byte == b']' => {
            Verdict::Opener { at, family, key: name.key(), role: None }
        }
        Confidence::Strong if code && !names::is_reserved(name.as_str()) => Verdict::Clean,
        // The text of a link: `[prompt_toolkit][]`.
        Confidence::Strong
            if byte == b']' && !closer && !ours && written.lower_case && is_link(window, next) =>
        {
            Verdict::Opener { at, family, key: name.key(), role: None }
        }
        Confidence::Strong if byte == b']' && closer => Verdict::Closer { at, family, key: name.key() },
        Confidence::Strong if byte == b']' || ours && attribute(window, next, ending) => mark,
        Confidence::Weak if byte == b']' && closer => Verdict::Closer { at, family, key: name.key() },
        // Usage texts have a space in front of `[ARGS]`, and code writes an index in lower case.
        Confidence::Weak
            if byte == b']'
                && name.as_str() == "args"
                && follows_identifier(written.before)
                && !written.lower_case =>
        {
            mark
        }
        Confidence::Weak if byte == b']' && !code => {
            let end = ending == TextEnd::Open && window.get(next + 1) == END && name.as_str() == "args";
            // In a usage text a space or dots follow.
            let tight = name.as_str() == "args" && window.get(next + 1).is_ascii_alphanumeric();
            if end || tight || payload(window, next + 1) {
                mark
            } else {
                Verdict::Opener { at, family, key: name.key(), role: names::role(name.as_str()) }
            }
        }
        _ => Verdict::Clean,
    }
}

/// `[to ol_call]`, `[IN ST]`: a name split by white space that has no other use.
fn split_name(window: &mut Window<'_, '_>, at: usize, start: usize, closer: bool, code: bool) -> Verdict {
    let mark = Verdict::Mark { at, family: Family::Bracket };
    let name = Name::read(window, start, true);
    let next = window.skip_space(name.next);
    if !name.spaced || window.get(next) != b']' {
        return Verdict::Clean;
    }
    // The text of a link, in whole words: `[tool use](https://…)`.
    if !closer
        && is_link(window, next)
        && words(window, start).is_some_and(|(words, _)| names::is_banner(&words) && !names::is_bound(&words))
    {
        return Verdict::Clean;
    }
    let spelled = name.as_str();
    match names::bracket(spelled.trim_matches('_')) {
        Confidence::Core => mark,
        _ if code && !names::is_reserved(spelled) && !matches!(spelled, "inst" | "structured") => {
            Verdict::Clean
        }
        Confidence::Strong => mark,
        Confidence::Weak if spelled == "args" && payload(window, next + 1) => mark,
        Confidence::Weak if closer => Verdict::Closer { at, family: Family::Bracket, key: name.key() },
        Confidence::Weak => {
            Verdict::Opener { at, family: Family::Bracket, key: name.key(), role: names::role(spelled) }
        }
        Confidence::None => Verdict::Clean,
    }
}

/// `[|name|]`; an array of one variable looks the same, so the name has to be about turns or tools.
fn bar(window: &mut Window<'_, '_>, at: usize, bar: usize, ending: TextEnd) -> Verdict {
    let index = window.skip_space(bar + 1);
    let name = Name::read(window, index, true);
    let close = window.skip_space(name.next);
    let bracket = window.skip_space(close + 1);
    let open = ending == TextEnd::Open;
    let suspicious = match (window.get(close), window.get(bracket)) {
        (b'|', b']') => names::names_turn_or_tool(name.as_str()),
        (END, _) | (b'|', END) => open && (name.len == 0 || names::may_become_name(name.as_str())),
        _ => false,
    };
    if suspicious { Verdict::Mark { at, family: Family::BarTag } } else { Verdict::Clean }
}

/// Judges `~` in sentinels such as `]~b]` and `[e~[`. The mark goes in front of it.
pub(crate) fn tilde(window: &mut Window<'_, '_>, ending: TextEnd) -> Verdict {
    /// Letters between the bracket and the tilde.
    const MAX_LETTERS: usize = 4;
    let (text, at) = (window.text, window.from);
    let mark = Verdict::Mark { at, family: Family::Sentinel };
    let mut index = window.skip_space(1);
    if window.get(index) == b'!' {
        index = window.skip_space(index + 1);
    }
    let name = Name::read(window, index, true);
    let close = window.skip_space(name.next);
    let close = window.get(close);
    let unfinished = close == END && ending == TextEnd::Open;
    if name.len > MAX_LETTERS || !matches!(close, b']' | b'[') && !unfinished {
        return Verdict::Clean;
    }
    // Backwards: letters, then a bracket, ignoring white space and invisible characters.
    let (mut end, mut letters) = (at, 0);
    while letters <= MAX_LETTERS {
        let Some((start, c)) = text[..end].char_indices().next_back() else {
            // At the very beginning, the bracket may belong to text in front of it.
            return if letters == 0 && name.len > 0 && close == b']' { mark } else { Verdict::Clean };
        };
        if let Some(start) = before_comment(&text[..end]) {
            end = start;
            continue;
        }
        let skipped = is_invisible(c) || matches!(fold(c), Folded::One(b' ' | b'\n') | Folded::Nothing);
        let (byte, start) = if skipped { (b' ', start) } else { folded_before(text, end) };
        match byte {
            // Backslashes quote, and are dropped by the reader.
            b' ' | b'\\' if at - start <= MAX_BACK => {}
            b']' if letters == 0 && (name.len > 0 || unfinished) => return mark,
            b'[' if letters > 0 && name.len == 0 && (close == b'[' || unfinished) => return mark,
            byte if byte.is_ascii_alphabetic() => letters += 1,
            _ => return Verdict::Clean,
        }
        end = start;
    }
    Verdict::Clean
}

/// How far back a sentinel may begin, in bytes: a few characters, spelled out, with white space.
const MAX_BACK: usize = 64;

/// Judges a symbol: `✿FUNCTION✿` is a name between two of them. Ornaments of a headline stand apart from its
/// words, or have no colon behind them.
pub(crate) fn symbol(window: &mut Window<'_, '_>) -> Verdict {
    let start = window.skip_space(1);
    let name = Name::read(window, start, true);
    let close = window.skip_space(name.next);
    if name.len == 0 || window.get(close) != SYMBOL {
        return Verdict::Clean;
    }
    let colon = window.skip_space(close + 1);
    let tight = start == 1 && close == name.next;
    let spoken = names::names_turn_or_tool(name.as_str()) || name.as_str() == "return";
    // No headline is one of these words in capitals.
    let spelled = &window.text[window.start_of(start)..window.end_of(name.next - 1)];
    let capital = matches!(name.as_str(), "function" | "args" | "result" | "return")
        && !spelled.contains(char::is_lowercase);
    if spoken && (tight || capital || window.get(colon) == b':') {
        return Verdict::Mark { at: window.end_of(0), family: Family::Sentinel };
    }
    Verdict::Clean
}

/// `[TOOL CALL]`, `[BEGIN OF AVAILABLE TOOLS]`: several words. A link or its target has its address behind
/// it.
fn banner(window: &mut Window<'_, '_>, start: usize, closer: bool) -> bool {
    let Some((joined, index)) = words(window, start) else { return false };
    window.get(index) == b']'
        && names::is_banner(&joined)
        && (closer || names::is_bound(&joined) || !is_link(window, index))
}

/// Whether the address of a link stands behind the bracket that closes at `index`.
fn is_link(window: &mut Window<'_, '_>, index: usize) -> bool {
    match window.get(index + 1) {
        b'(' => true,
        // `[text][label]`, `[text][]`; the payload of a call begins with an object or a string.
        b'[' => {
            let label = Name::read(window, index + 2, true);
            let close = window.skip_space(label.next);
            window.get(close) == b']'
        }
        b':' => window.get(index + 2) == b' ',
        _ => false,
    }
}

/// The words from `start` on, with `_` in place of the white space, and the index behind them.
fn words(window: &mut Window<'_, '_>, start: usize) -> Option<(String, usize)> {
    /// The longest in use has four.
    const MAX_WORDS: usize = 6;
    let mut joined = String::new();
    let mut index = start;
    for _ in 0..MAX_WORDS {
        let word = Name::read(window, index, false);
        if word.len == 0 {
            break;
        }
        joined.push_str(word.as_str());
        index = window.skip_space(word.next);
        if index == word.next {
            break;
        }
        joined.push('_');
    }
    (!joined.is_empty()).then_some((joined, index))
}
