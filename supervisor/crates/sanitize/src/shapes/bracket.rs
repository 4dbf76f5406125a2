//! Brackets: `[TOOL_CALLS]`, `[/INST]`, `[|assistant|]`, and Talon's own `[plugin_output]` and `[structured]`.

use super::{
    Ending, Name, Verdict, attribute, follows_identifier, is_name, is_type_name, payload, unfinished,
};
use crate::names::{self, Strength};
use crate::skeleton::{END, Window};
use crate::tally::Family;

/// Judges a `[`. `before` is the character in front of it.
pub(crate) fn bracket(window: &mut Window<'_, '_>, before: Option<char>, ending: Ending) -> Verdict {
    let at = window.end_of(0);
    match window.get(1) {
        b'>' if window.get(2) == b'[' => return Verdict::Mark { at, family: Family::Sentinel },
        b'|' => return bar(window, at, ending),
        _ => {}
    }
    let mut index = window.skip_space(1);
    let closer = window.get(index) == b'/';
    if closer {
        index = window.skip_space(index + 1);
    }
    let first = window.get(index);
    if first == END && ending == Ending::Open {
        return Verdict::Mark { at, family: Family::Bracket };
    }
    if !is_name(first) {
        return Verdict::Clean;
    }
    let name = Name::read(window, index, false);
    let spelled = &window.text[window.start_of(index)..window.end_of(name.next.max(index + 1) - 1)];
    let lower_case = !spelled.contains(char::is_uppercase);
    let type_name = is_type_name(spelled);
    let verdict = judge(window, at, &name, closer, Written { before, lower_case, type_name }, ending);
    if verdict == Verdict::Clean && torn(window, index) {
        return Verdict::Mark { at, family: Family::Bracket };
    }
    verdict
}

/// How the name is written, which tells an index or an attribute of a programming language from a delimiter.
struct Written {
    before: Option<char>,
    lower_case: bool,
    type_name: bool,
}

fn judge(
    window: &mut Window<'_, '_>,
    at: usize,
    name: &Name,
    closer: bool,
    written: Written,
    ending: Ending,
) -> Verdict {
    let strength = names::bracket(name.as_str());
    let ours = name.as_str().starts_with("plugin_output") || name.as_str() == "structured";
    let family = if ours { Family::Envelope } else { Family::Bracket };
    let mark = Verdict::Mark { at, family };
    let next = window.skip_space(name.next);
    let byte = window.get(next);
    if unfinished(byte, name, ending) {
        return mark;
    }
    let code = !closer
        && !ours
        && (follows_identifier(written.before) && (written.lower_case || written.type_name)
            || matches!(written.before, Some('#' | '!')) && written.lower_case);
    match strength {
        Strength::None => Verdict::Clean,
        Strength::Core if written.type_name && code => Verdict::Clean,
        Strength::Core => {
            let named = matches!(byte, b']' | b':' | b'=') || ours;
            if named || attribute(window, next, ending) { mark } else { Verdict::Clean }
        }
        Strength::Strong if code => Verdict::Clean,
        Strength::Strong if byte == b']' || ours && attribute(window, next, ending) => mark,
        Strength::Weak if byte == b']' && closer => Verdict::Closer { at, family, key: name.key() },
        // Usage texts have a space in front of `[ARGS]`, and code writes an index in lower case.
        Strength::Weak
            if byte == b']'
                && name.as_str() == "args"
                && follows_identifier(written.before)
                && !written.lower_case =>
        {
            mark
        }
        Strength::Weak if byte == b']' && !code => {
            let end = ending == Ending::Open && window.get(next + 1) == END && name.as_str() == "args";
            if end || payload(window, next + 1) {
                mark
            } else {
                Verdict::Opener { at, family, key: name.key() }
            }
        }
        _ => Verdict::Clean,
    }
}

/// `[to ol_call]`, `[IN ST]`: a name torn by white space that nothing else is called.
fn torn(window: &mut Window<'_, '_>, start: usize) -> bool {
    let name = Name::read(window, start, true);
    let next = window.skip_space(name.next);
    if !name.spaced || window.get(next) != b']' {
        return false;
    }
    match name.as_str() {
        "inst" | "structured" => true,
        "args" => payload(window, next + 1),
        spelled => {
            let spelled = spelled.trim_matches('_');
            spelled.contains('_') && (names::bracket(spelled) == Strength::Core || spelled == "call_id")
        }
    }
}

/// `[|name|]`; an array of one variable looks the same, so the name has to speak of turns or tools.
fn bar(window: &mut Window<'_, '_>, at: usize, ending: Ending) -> Verdict {
    let index = window.skip_space(2);
    let name = Name::read(window, index, true);
    let close = window.skip_space(name.next);
    let bracket = window.skip_space(close + 1);
    let open = ending == Ending::Open;
    let suspicious = match (window.get(close), window.get(bracket)) {
        (b'|', b']') => names::speaks(name.as_str()),
        (END, _) | (b'|', END) => open && (name.len == 0 || names::may_become(name.as_str())),
        _ => false,
    };
    if suspicious { Verdict::Mark { at, family: Family::BarTag } } else { Verdict::Clean }
}

/// Judges `~` in sentinels such as `]~b]` and `[e~[`. `at` is its offset; the mark goes in front of it.
pub(crate) fn tilde(text: &str, at: usize) -> Verdict {
    /// Letters between the bracket and the tilde.
    const MAX_LETTERS: usize = 4;
    let bytes = text.as_bytes();
    let letters = |bytes: &mut dyn Iterator<Item = &u8>| {
        bytes.take(MAX_LETTERS).take_while(|b| b.is_ascii_alphabetic()).count()
    };
    let before = letters(&mut bytes[..at].iter().rev());
    let bang = usize::from(bytes.get(at + 1) == Some(&b'!'));
    let behind = &bytes[(at + 1 + bang).min(bytes.len())..];
    let after = letters(&mut behind.iter());
    let opens = at.checked_sub(before + 1).map(|open| bytes[open]);
    let sentinel = match (opens, behind.get(after)) {
        (Some(b']'), Some(b']' | b'[')) => before == 0 && after > 0,
        (Some(b'['), Some(b'[')) => before > 0 && after == 0,
        _ => false,
    };
    if sentinel { Verdict::Mark { at, family: Family::Sentinel } } else { Verdict::Clean }
}
