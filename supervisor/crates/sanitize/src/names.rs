//! Which names make a delimiter suspicious, by the words they are made of.
//!
//! There is no list of tokens: a name is cut into words, and what counts is which words meet. New formats keep
//! appearing, but they keep saying "tool", "call", "start of" and the names of the turns.

use crate::words::{COMPANIONS, CORE_PAIRS, SECOND_LETTERS, TOOLISH, WHOLE_NAMES};

/// How sure a name alone makes us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    /// Not a name of control syntax.
    None,
    /// An everyday word too (`user`, `function`): it takes a closer, an attribute or a payload to count.
    Weak,
    /// Used for control syntax; spelled in an unusual way it still reads so.
    Strong,
    /// Nothing but control syntax is called so, wherever it stands.
    Core,
}

/// How suspicious a tag is whose name is one word. Most of the tags in a page come through here, so it is a
/// `match`, which compares lengths first.
fn tag_word(word: &[u8]) -> Strength {
    match word {
        b"assistant" | b"bos" | b"eop" | b"sop" | b"endoftext" | b"eos" | b"fcall" | b"functioncall"
        | b"functioncalls" | b"functionresponse" | b"human" | b"im" | b"inst" | b"invoke" | b"invokename"
        | b"parametername" | b"sys" | b"system" | b"tools" | b"think" | b"thinking" | b"toolcall"
        | b"toolcalls" | b"toolcode" | b"tooloutput" | b"toolresponse" | b"toolresponses" | b"toolresult"
        | b"toolresults" | b"tooluse" | b"tooluses" => Strength::Strong,
        b"call" | b"developer" | b"function" | b"functions" | b"instructions" | b"observation"
        | b"parameter" | b"parameters" | b"s" | b"structured" | b"tool" | b"user" => Strength::Weak,
        _ => Strength::None,
    }
}

/// How suspicious a bracketed name of one word is.
fn bracket_word(word: &[u8]) -> Strength {
    match word {
        b"availabletools" | b"callid" | b"functioncall" | b"functioncalls" | b"gmask" | b"inst"
        | b"pluginoutput" | b"smask" | b"structured" | b"systemmessage" | b"systemprompt" | b"think"
        | b"toolcall" | b"toolcalls" | b"toolcontent" | b"toolrequest" | b"toolresponse" | b"toolresult"
        | b"toolresults" | b"tooluse" | b"tooluses" => Strength::Strong,
        b"args" | b"assistant" | b"call" | b"calls" | b"func" | b"function" | b"human" | b"instruction"
        | b"instructions" | b"plugin" | b"plugins" | b"sys" | b"system" | b"tool" | b"toolkit" | b"tools"
        | b"user" => Strength::Weak,
        _ => Strength::None,
    }
}

/// How suspicious a tag of this name is: `<name …>`. `name` is folded.
pub(crate) fn tag(name: &str) -> Strength {
    name_of(name, tag_word)
}

/// How suspicious a bracketed name is: `[name]`. `name` is folded.
pub(crate) fn bracket(name: &str) -> Strength {
    match name_of(name, bracket_word) {
        // Code writes `input[start_of_line]`; models write it between angles.
        Strength::Core if !name.contains("tool") && !name.contains("call") && !name.contains("plugin") => {
            Strength::Strong
        }
        _ if name == "call_id" => Strength::Strong,
        strength => strength,
    }
}

fn name_of(name: &str, word: fn(&[u8]) -> Strength) -> Strength {
    let name = name.trim_matches(|c| matches!(c, '_' | '-'));
    if !name.contains(['_', '-']) {
        return if is_reserved(name) { Strength::Strong } else { word(name.as_bytes()) };
    }
    if is_reserved(name) {
        return Strength::Strong;
    }
    let mut toolish = false;
    let mut all_known = true;
    let mut previous = "";
    for word in words(name) {
        if CORE_PAIRS.contains(&(previous, word)) {
            return Strength::Core;
        }
        let tooly = TOOLISH.contains(&word);
        toolish |= tooly;
        all_known &= tooly || COMPANIONS.contains(&word) || word.bytes().all(|b| b.is_ascii_digit());
        previous = word;
    }
    match (toolish, all_known) {
        (true, true) => Strength::Strong,
        // Web pages name their own elements with hyphens: `<user-card>`.
        (true, false) if !name.contains('-') => Strength::Weak,
        _ => Strength::None,
    }
}

/// Tokens that vocabularies keep in reserve, and that some models were trained to take for turns: `<unused7>`,
/// `<reserved_106>`, `<extra_id_1>`.
fn is_reserved(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() < name.len()
        && matches!(
            stem.trim_end_matches(['_', '-']),
            "unused" | "reserved" | "extra_id" | "special" | "ctrl"
        )
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(['_', '-']).filter(|word| !word.is_empty())
}

/// Whether more text could turn this beginning of a name into one that counts. Text that ends in the middle of a
/// delimiter is marked there, because what comes behind it is not known.
pub(crate) fn may_become(beginning: &str) -> bool {
    let beginning = beginning.trim_start_matches(['_', '-']);
    let mut parts = beginning.rsplitn(2, ['_', '-']);
    let last = parts.next().unwrap_or_default();
    if parts
        .next()
        .is_some_and(|rest| words(rest).any(|word| TOOLISH.contains(&word) || COMPANIONS.contains(&word)))
    {
        return true;
    }
    !last.is_empty() && begins_word(last)
}

/// Whether a name between bars speaks of turns or tools, or is at least no variable of an expression.
pub(crate) fn speaks(name: &str) -> bool {
    let known =
        |word: &str| TOOLISH.contains(&word) || COMPANIONS.contains(&word) || WHOLE_NAMES.contains(&word);
    name.contains('_') || words(name).any(known)
}

/// Whether some word begins like this.
pub(crate) fn begins_word(beginning: &str) -> bool {
    TOOLISH.iter().chain(&COMPANIONS).chain(&WHOLE_NAMES).any(|word| word.starts_with(beginning))
}

/// Whether some word begins with these two letters, whatever their case.
pub(crate) fn may_be_word(first: u8, second: u8) -> bool {
    let (first, second) = (first.to_ascii_lowercase(), second.to_ascii_lowercase());
    let Some(seconds) = SECOND_LETTERS.get(usize::from(first.wrapping_sub(b'a'))) else { return false };
    let bit = if second.is_ascii_lowercase() { second - b'a' } else { 31 };
    seconds & (1 << bit) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_decide_not_tokens() {
        for name in [
            "tool_call",
            "longcat_tool_call",
            "tool-response",
            "end_of_turn",
            "function_calls",
            "plugin_output",
        ] {
            assert_eq!(tag(name), Strength::Core, "{name}");
        }
        for name in ["arg_list", "invoke", "think", "tool_choice", "toolcall"] {
            assert!(matches!(tag(name), Strength::Strong), "{name}");
        }
        for name in ["user", "tool", "tool_name", "system_error"] {
            assert_eq!(tag(name), Strength::Weak, "{name}");
        }
        for name in ["user-card", "div", "string", "server_name", "a", "toolbox", "usage", ""] {
            assert_eq!(tag(name), Strength::None, "{name}");
        }
    }
}
