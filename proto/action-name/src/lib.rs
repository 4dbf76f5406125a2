//! Tool names as action names.
//!
//! MCP and OpenTalon allow any text as the name of a tool; an action's name is 1 to 64 of `a-z A-Z 0-9 _ -`. A valid
//! action name stays as it is, unless it holds `_-`, which begins every escape:
//!
//! | in a tool's name | in the action's |
//! |---|---|
//! | a letter, a digit, `-`, `_` that no `-` follows | itself |
//! | every other byte of its UTF-8, and `_` before `-` | `_-` and two hexadecimal digits: `a.b` is `a_-2eb` |
//! | the empty name | `_-n` |
//! | what would be longer than 64 | its first 40 characters as above, `_-h`, and 20 hexadecimal digits of its SHA-256 |
//!
//! So every action names one tool. Only the last form cannot be decoded from the name alone; for it the
//! bridge remembers the tool. Names do not depend on which other tools there are: a tool keeps its action's
//! name for ever.

use sha2::{Digest, Sha256};

/// The longest name of an action: model APIs take no more.
pub const MAX_NAME_BYTES: usize = 64;
/// Begins an escape.
const MARK: &str = "_-";
/// How much of a name that is too long is kept.
const KEPT_BYTES: usize = 40;
/// How many hash digits distinguish names with the same beginning: 80 bits.
const DIGITS: usize = 20;

/// The action's name of a tool.
#[must_use]
pub fn action_name(tool: &str) -> String {
    if tool.is_empty() {
        return format!("{MARK}n");
    }
    let mut name = String::new();
    let bytes = tool.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let plain = byte.is_ascii_alphanumeric()
            || byte == b'-'
            || (byte == b'_' && bytes.get(index + 1).is_none_or(|next| *next != b'-'));
        if plain {
            name.push(char::from(byte));
        } else {
            name.push_str(MARK);
            name.push_str(&hex::encode([byte]));
        }
        if name.len() > MAX_NAME_BYTES {
            return shortened(&name, tool);
        }
    }
    name
}

fn shortened(name: &str, tool: &str) -> String {
    let digest = hex::encode(Sha256::digest(tool.as_bytes()));
    let mut end = KEPT_BYTES;
    // An escape is not cut in two, so that the kept part can be decoded.
    if let Some(mark) = name[..end].rfind(MARK)
        && mark + MARK.len() + 2 > end
    {
        end = mark;
    }
    // And the kept part must not end with the beginning of an escape.
    let start = name[..end].trim_end_matches('_');
    format!("{start}{MARK}h{}", &digest[..DIGITS])
}

/// The tool's name of an action, if the action's name alone determines it.
#[cfg(test)]
fn tool_name(action: &str) -> Option<String> {
    if action == format!("{MARK}n") {
        return Some(String::new());
    }
    let mut bytes = Vec::new();
    let mut rest = action;
    while let Some(first) = rest.bytes().next() {
        if let Some(marked) = rest.strip_prefix(MARK) {
            bytes.extend(hex::decode(marked.get(..2)?).ok()?);
            rest = &marked[2..];
        } else {
            bytes.push(first);
            rest = &rest[1..];
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn is_action_name(name: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(plain)
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        let long = "x".repeat(64);
        for name in ["read_file", "get-env", "A1", "__init__", "-", "_", "a-_b", &long] {
            assert_eq!(action_name(name), name);
        }
        for (tool, action) in [
            ("a.b", "a_-2eb"),
            ("a b", "a_-20b"),
            ("", "_-n"),
            ("_-n", "_-5f-n"),
            ("_-", "_-5f-"),
            ("é", "_-c3_-a9"),
            ("_.", "__-2e"),
        ] {
            assert_eq!(action_name(tool), action);
            assert_eq!(tool_name(action).as_deref(), Some(tool));
        }
    }

    #[test]
    fn long_names_that_begin_alike_are_told_apart() {
        let same = "very/long/name/".repeat(20);
        let (one, other) = (action_name(&format!("{same}1")), action_name(&format!("{same}2")));
        assert_ne!(one, other);
        assert!(is_action_name(&one) && is_action_name(&other), "{one} {other}");
        assert!(one.contains("_-h") && one.starts_with("very_-2flong"), "{one}");
        // A name that looks like a shortened one is none.
        assert_ne!(action_name(&one), one);
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof![".{0,8}", "[a-f0-9_.-]{0,70}", "[_-]{0,8}[nh]?[0-9a-f]{0,4}", ".{60,70}"]
    }

    proptest! {
        #[test]
        fn every_name_has_an_action_that_leads_back(tool in names()) {
            let action = action_name(&tool);
            prop_assert!(is_action_name(&action), "{action}");
            match tool_name(&action) {
                Some(back) => prop_assert_eq!(back, tool),
                None => prop_assert!(action.contains("_-h"), "{}", action),
            }
        }

        // Promises: MCP-17
        #[test]
        fn no_two_names_share_an_action(tools in prop::collection::btree_set(names(), 0..40)) {
            let actions: BTreeMap<String, &String> = tools.iter().map(|tool| (action_name(tool), tool)).collect();
            prop_assert_eq!(actions.len(), tools.len());
        }
    }
}
