//! Classifies the names of delimiters by the words they are made of.
//!
//! There is no list of tokens: a name is split into words, and the combination of words counts. New formats
//! keep appearing, but they keep saying "tool", "call", "start of" and the names of the turns.

use crate::role::Role;
use crate::vocabulary::{
    CALL_KEYS, COMPANIONS, COMPOUNDS, CORE_PAIRS, KEY_ENDINGS, MARKERS, OBJECTS, TOOL_WORDS, VERBS,
    WHOLE_NAMES,
};

/// How surely a name alone means control syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confidence {
    /// Not a name of control syntax.
    None,
    /// An everyday word too (`user`, `function`): it takes a closer, an attribute or a payload to count.
    Weak,
    /// Used for control syntax; counts in unusual spellings too.
    Strong,
    /// Used for nothing but control syntax, wherever it stands.
    Core,
}

/// The confidence for a tag whose name is one word. Most of the tags in a page come through here, so it is a
/// `match`, which compares lengths first.
fn tag_word(word: &[u8]) -> Confidence {
    match word {
        b"assistant" | b"bos" | b"eoa" | b"eoh" | b"eop" | b"sop" | b"endoftext" | b"eos" | b"fcall"
        | b"functioncall" | b"functioncalls" | b"functionresponse" | b"human" | b"im" | b"inst"
        | b"invoke" | b"invokename" | b"parametername" | b"scratchpad" | b"sep" | b"sys" | b"system"
        | b"tools" | b"think" | b"thinking" | b"toolcall" | b"toolcalls" | b"toolcode" | b"tooloutput"
        | b"toolresponse" | b"toolresponses" | b"toolresult" | b"toolresults" | b"tooluse" | b"tooluses" => {
            Confidence::Strong
        }
        b"action" | b"actions" | b"arguments" | b"bot" | b"call" | b"chatbot" | b"developer" | b"execute"
        | b"function" | b"functions" | b"instruction" | b"instructions" | b"observation" | b"parameter"
        | b"parameters" | b"reasoning" | b"reflection" | b"role" | b"s" | b"structured" | b"thought"
        | b"thoughts" | b"tool" | b"user" => Confidence::Weak,
        _ => Confidence::None,
    }
}

/// The confidence for a bracketed name of one word.
fn bracket_word(word: &[u8]) -> Confidence {
    match word {
        b"availabletools" | b"callid" | b"functioncall" | b"functioncalls" | b"gmask" | b"inst"
        | b"pluginoutput" | b"smask" | b"structured" | b"systemmessage" | b"systemprompt" | b"think"
        | b"toolcall" | b"toolcalls" | b"toolcontent" | b"toolrequest" | b"toolresponse" | b"toolresult"
        | b"toolresults" | b"tooluse" | b"tooluses" => Confidence::Strong,
        b"args" | b"assistant" | b"bot" | b"call" | b"calls" | b"chatbot" | b"func" | b"function"
        | b"human" | b"instruction" | b"instructions" | b"plugin" | b"plugins" | b"sys" | b"system"
        | b"tool" | b"toolkit" | b"tools" | b"user" => Confidence::Weak,
        _ => Confidence::None,
    }
}

/// The confidence for a tag of this name: `<name …>`. `name` is folded.
pub(crate) fn tag(name: &str) -> Confidence {
    // `<_user>`: an underscore and one word.
    if let Some(word) = name.strip_prefix('_')
        && (MARKERS.contains(&word) || !word.contains('_') && role(word).is_some())
    {
        return Confidence::Strong;
    }
    name_of(name, tag_word)
}

/// The confidence for a bracketed name: `[name]`. `name` is folded.
pub(crate) fn bracket(name: &str) -> Confidence {
    match name_of(name, bracket_word) {
        _ if name == "model_settings" => Confidence::Strong,
        // Terms of prose, often the text of a link: `[End-of-Life][]`.
        Confidence::Core if name.contains("-of-") && !name.contains("tool") => Confidence::None,
        // Code writes `input[start_of_line]`; models write it between angles.
        Confidence::Core if !name.contains("tool") && !name.contains("call") && !name.contains("plugin") => {
            Confidence::Strong
        }
        _ if name == "call_id" => Confidence::Strong,
        strength => strength,
    }
}

fn name_of(name: &str, word: fn(&[u8]) -> Confidence) -> Confidence {
    let name = name.trim_matches(|c| matches!(c, '_' | '-'));
    if !name.contains(['_', '-']) {
        return if is_reserved(name) || extends_compound(name) {
            Confidence::Strong
        } else {
            word(name.as_bytes())
        };
    }
    if is_reserved(name) {
        return Confidence::Strong;
    }
    let mut toolish = false;
    let mut all_known = true;
    let mut previous = "";
    for word in words(name) {
        let unnumbered = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if !previous.is_empty() && CORE_PAIRS.contains(&(previous, unnumbered)) {
            return Confidence::Core;
        }
        let tooly = is_one_of(&TOOL_WORDS, word);
        toolish |= tooly;
        all_known &= tooly || is_one_of(&COMPANIONS, word) || word.bytes().all(|b| b.is_ascii_digit());
        previous = word;
    }
    // A placeholder of a usage text: `<arg-1>`.
    let is_numbered = || {
        let mut words = words(name);
        words.next().is_some() && words.all(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match (toolish, all_known) {
        (true, true) if name.contains('-') && is_numbered() => Confidence::Weak,
        (true, true) => Confidence::Strong,
        _ if is_delimiter_name(name) => Confidence::Strong,
        // Web pages name their own elements with hyphens: `<user-card>`.
        (true, false) if !name.contains('-') => Confidence::Weak,
        _ if is_order(name) => Confidence::Weak,
        _ => Confidence::None,
    }
}

/// Whether the name is one of [`COMPOUNDS`], or extends one: `<toolcallv2>`, `<mcptooluse>`. No other word
/// holds one. Most names are those of HTML and shorter than each of them.
fn extends_compound(name: &str) -> bool {
    const SHORTEST: usize = {
        let (mut shortest, mut at) = (usize::MAX, 0);
        while at < COMPOUNDS.len() {
            if COMPOUNDS[at].len() < shortest {
                shortest = COMPOUNDS[at].len();
            }
            at += 1;
        }
        shortest
    };
    name.len() >= SHORTEST && COMPOUNDS.iter().any(|known| name.contains(known))
}

/// Whether the name marks the beginning or the end of a turn or a call: `<end_code>`, `<start_function_x>`,
/// `<fim_prefix>`. `<end_user>` and `<start_time>` do not.
fn is_delimiter_name(name: &str) -> bool {
    let mut words = words(name);
    match words.next() {
        Some("fim") => true,
        Some("begin" | "end" | "start" | "stop") => {
            words.clone().any(is_tool_word) || words.all(|word| COMPANIONS.contains(&word))
        }
        _ => false,
    }
}

/// Whether the word is one of [`TOOL_WORDS`] and not a speaker.
fn is_tool_word(word: &str) -> bool {
    word == "plan" || TOOL_WORDS.contains(&word) && role(word).is_none()
}

/// Whether the name is a command with an object that agents work on: `<read_file>`,
/// `<execute_command>`. Elements of ordinary XML have such names too, so it counts in pairs only.
fn is_order(name: &str) -> bool {
    let mut words = words(name);
    name == "server_name"
        || !name.contains('-')
            && words.next().is_some_and(|first| VERBS.contains(&first))
            && words.any(|word| OBJECTS.contains(&word))
}

/// The speaker in a name: its last word.
pub(crate) fn role(name: &str) -> Option<Role> {
    let name = name.trim_end_matches(['_', '-']);
    Some(match name.rsplit(['_', '-']).next()? {
        "assistant" => Role::Assistant,
        "bot" | "chatbot" => Role::Bot,
        "human" => Role::Human,
        "system" => Role::System,
        "user" => Role::User,
        _ => return None,
    })
}

/// Whether a bracketed name of several words, with `_` in place of the spaces, is suspicious. Annotations
/// such as `[end of file]` are not about tools, and links such as `[system call]` are not calls of tools.
pub(crate) fn is_banner(name: &str) -> bool {
    let pair = |(one, two): (&str, &str)| {
        // `[Function calling](…)`
        let two = if two == "calling" { "call" } else { two };
        CORE_PAIRS.contains(&(one, two)) && (two != "of" || words(name).any(is_tool_word))
    };
    words(name).zip(words(name).skip(1)).any(pair)
}

/// Whether a name of several words says where a section begins or ends, as no text of a link does.
pub(crate) fn is_bound(name: &str) -> bool {
    ["begin_of_", "start_of_", "end_of_"].iter().any(|bound| name.starts_with(bound))
}

/// Whether a key of a JSON object is about calls: `tool_calls`, `functionResponse`, `toolUseId`,
/// `action_input`.
pub(crate) fn is_call_key(key: &str) -> bool {
    // A schema of functions has keys such as `functionResponseTypes`.
    starts_call_key(key, |key, known| key.strip_prefix(known).is_some_and(|rest| KEY_ENDINGS.contains(&rest)))
}

/// Whether more text could turn this beginning of a key into a call key.
pub(crate) fn may_become_call_key(beginning: &str) -> bool {
    !beginning.is_empty()
        && starts_call_key(beginning, |key, known| match key.strip_prefix(known) {
            Some(rest) => KEY_ENDINGS.iter().any(|ending| ending.starts_with(rest)),
            None => known.starts_with(key),
        })
}

fn starts_call_key(key: &str, matches: impl Fn(&str, &str) -> bool) -> bool {
    let squashed: String = key.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    CALL_KEYS.iter().any(|known| matches(&squashed, known))
}

/// Whether a `type` of this value makes an object a call, its answer or a part of one, if its siblings agree.
pub(crate) fn is_call_type(kind: &str) -> bool {
    kind == "function"
        || kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || matches!(kind, "mcp_approval_request" | "mcp_list_tools")
        || words(kind).zip(words(kind).skip(1)).any(|pair| {
            matches!(pair, ("tool", "use" | "result" | "call") | ("function", "call" | "response" | "result"))
        })
}

/// Reserved tokens of vocabularies, which some models were trained to read as turns: `<unused7>`,
/// `<reserved_106>`, `<extra_id_1>`.
pub(crate) fn is_reserved(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() < name.len()
        && matches!(
            stem.trim_end_matches(['_', '-']),
            "unused"
                | "reserved"
                | "extra_id"
                | "special"
                | "ctrl"
                | "tokens_unused"
                | "token_unused"
                | "reserved_token"
                | "reserved_special_token"
        )
}

/// Whether a sorted list has the word.
fn is_one_of(sorted: &[&str], word: &str) -> bool {
    sorted.binary_search(&word).is_ok()
}

fn words(name: &str) -> impl Iterator<Item = &str> + Clone {
    name.split(['_', '-']).filter(|word| !word.is_empty())
}

/// Whether more text could turn this beginning of a name into a suspicious one. Text that ends in the middle
/// of a delimiter is marked there, because what follows is unknown.
pub(crate) fn may_become_name(beginning: &str) -> bool {
    let beginning = beginning.trim_start_matches(['_', '-']);
    let mut parts = beginning.rsplitn(2, ['_', '-']);
    let last = parts.next().unwrap_or_default();
    if parts.next().is_some_and(|rest| {
        words(rest).any(|word| {
            TOOL_WORDS.contains(&word) || COMPANIONS.contains(&word) || VERBS.contains(&word) || word == "fim"
        })
    }) {
        return true;
    }
    !last.is_empty() && is_word_prefix(last)
}

/// Whether a name between bars is about turns or tools, or at least cannot be a variable of an expression.
pub(crate) fn names_turn_or_tool(name: &str) -> bool {
    let known =
        |word: &str| TOOL_WORDS.contains(&word) || COMPANIONS.contains(&word) || WHOLE_NAMES.contains(&word);
    name.contains('_') || words(name).any(known)
}

/// Whether some word begins with this.
pub(crate) fn is_word_prefix(beginning: &str) -> bool {
    TOOL_WORDS
        .iter()
        .chain(&COMPANIONS)
        .chain(&WHOLE_NAMES)
        .chain(&VERBS)
        .any(|word| word.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_searched_are_sorted() {
        assert!(TOOL_WORDS.is_sorted() && COMPANIONS.is_sorted());
    }

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
            assert_eq!(tag(name), Confidence::Core, "{name}");
        }
        for name in ["arg_list", "invoke", "think", "tool_choice", "toolcall"] {
            assert!(matches!(tag(name), Confidence::Strong), "{name}");
        }
        for name in ["user", "tool", "tool_name", "system_error"] {
            assert_eq!(tag(name), Confidence::Weak, "{name}");
        }
        for name in ["user-card", "div", "string", "file_name", "a", "toolbox", "usage", ""] {
            assert_eq!(tag(name), Confidence::None, "{name}");
        }
    }
}
