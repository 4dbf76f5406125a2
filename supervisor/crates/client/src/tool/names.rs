//! The names of tools: `plugin__action`.
//!
//! The APIs of model providers accept `[a-zA-Z0-9_-]{1,64}`, and MCP hosts pass names on to them. A plugin's
//! name has no `_`, so the first `__` of a name marks its end, and people can read `plugin__action`. Where
//! that would be too long, the name is `PLUGIN_DIGEST_ACTION`: prefixes of both and 80 bits of their SHA-256.
//! Its first `_` is not followed by another, so it cannot equal a short name. It depends on these two names
//! only, so it is the same in every list and does not change.

use sha2::{Digest as _, Sha256};

/// The limit of model providers' APIs.
pub const MAX_NAME_LEN: usize = 64;
/// Digits of the digest, 5 bits each: enough that a plugin cannot find a collision with another plugin's
/// tool.
const DIGITS: usize = 16;
/// The length of the plugin's part; the rest is the action's.
const PLUGIN_LEN: usize = 20;
const ACTION_LEN: usize = MAX_NAME_LEN - PLUGIN_LEN - DIGITS - 2;

/// The name of an action's tool.
#[must_use]
pub fn tool_name(plugin: &str, action: &str) -> String {
    let plain = full_name(plugin, action);
    if plain.len() <= MAX_NAME_LEN && plain.bytes().all(is_allowed) && !plugin.contains('_') {
        return plain;
    }
    format!("{}_{}_{}", prefix(plugin, PLUGIN_LEN), digest(plugin, action), prefix(action, ACTION_LEN))
}

/// The name without a limit of its length.
fn full_name(plugin: &str, action: &str) -> String {
    format!("{plugin}__{action}")
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A prefix of a name, with characters that are allowed in a tool's name.
fn prefix(text: &str, len: usize) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    text.chars().take(len).map(good).collect()
}

fn digest(plugin: &str, action: &str) -> String {
    /// RFC 4648's base32 alphabet, in lower case.
    const DIGIT: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut hash = Sha256::new();
    hash.update(plugin);
    hash.update([0]);
    hash.update(action);
    let hash = hash.finalize();
    let bits = hash.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.take(DIGITS * 5).collect();
    bits.chunks(5)
        .map(|five| char::from(DIGIT[five.iter().fold(0, |sum, bit| sum << 1 | usize::from(*bit))]))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_name_is_plugin_and_action_and_a_long_one_keeps_their_beginnings() {
        assert_eq!(tool_name("git", "status"), "git__status");
        assert_eq!(tool_name("code-search", "_x__y"), "code-search___x__y");
        let long = tool_name("files", &"read_many_of_them".repeat(4));
        assert_eq!(long, "files_cgitjc6z6sg3drq4_read-many-of-themread-many");
        assert_eq!(tool_name(&"p".repeat(64), &"a".repeat(64)).len(), MAX_NAME_LEN);
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_providers_take_and_no_two_tools_share_one(
            pairs in proptest::collection::btree_set(
                ("[a-z0-9][a-z0-9-]{0,63}", "[a-zA-Z0-9_-]{1,64}"), 1..40
            )
        ) {
            let mut names = BTreeMap::new();
            for (plugin, action) in pairs {
                let name = tool_name(&plugin, &action);
                prop_assert!((1..=MAX_NAME_LEN).contains(&name.len()) && name.bytes().all(is_allowed), "{name}");
                if let Some((p, a)) = name.split_once("__").filter(|_| name == full_name(&plugin, &action)) {
                    prop_assert_eq!((p, a), (plugin.as_str(), action.as_str()));
                } else {
                    prop_assert!(full_name(&plugin, &action).len() > MAX_NAME_LEN);
                }
                let before = names.insert(name, (plugin.clone(), action.clone()));
                prop_assert!(before.is_none(), "{before:?} and {plugin} {action}");
            }
        }
    }
}
