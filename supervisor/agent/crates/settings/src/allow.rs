//! `agent.allow`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `plugin.action` or `plugin.*`.
pub type ToolPattern = String;

/// Which actions a sender, a channel or a sub-agent may call. The supervisor refuses all other calls with
/// `not_granted`, whatever the agent requests. Without a list, everything is allowed that the agent may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AllowKeys {
    /// By sender: a user's name, or `uid:NUMBER` for a user without a name.
    #[schemars(example = allow_example())]
    pub senders: BTreeMap<String, Vec<ToolPattern>>,
    /// By channel: `cli`, and later the gateway's channels.
    pub channels: BTreeMap<String, Vec<ToolPattern>>,
    /// By sub-agent. A sub-agent without a list may call what the session may.
    pub subagents: BTreeMap<String, Vec<ToolPattern>>,
}

fn allow_example() -> BTreeMap<&'static str, [ToolPattern; 2]> {
    BTreeMap::from([("alice", ["files.*".to_owned(), "hello.greet".to_owned()])])
}

/// The keys of a call's context that identify the caller. The host trusts them on the agent's own connection
/// only.
pub const SENDER_KEY: &str = "sender";
/// See [`SENDER_KEY`].
pub const CHANNEL_KEY: &str = "channel";
/// See [`SENDER_KEY`]: who speaks in a group, whose session it is; absent elsewhere.
pub const MEMBER_KEY: &str = "member";
/// See [`SENDER_KEY`]; absent if the session's own agent calls.
pub const SUBAGENT_KEY: &str = "subagent";

/// The longest name of an action, as everywhere.
const MAX_ACTION_BYTES: usize = 64;
/// The longest name of a plugin, as everywhere.
const MAX_PLUGIN_BYTES: usize = 64;

/// Whether a text is a pattern. Any other text covers nothing.
#[must_use]
pub fn is_pattern(text: &str) -> bool {
    let Some((plugin, action)) = text.rsplit_once('.') else { return false };
    let of_plugins = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let of_actions = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let is_plugin = (1..=MAX_PLUGIN_BYTES).contains(&plugin.len()) && plugin.bytes().all(of_plugins);
    let is_action = (1..=MAX_ACTION_BYTES).contains(&action.len()) && action.bytes().all(of_actions);
    is_plugin && (action == "*" || is_action)
}

/// Whether a pattern covers any action of a plugin.
#[must_use]
pub fn covers_some(pattern: &str, plugin: &str) -> bool {
    pattern.rsplit_once('.').is_some_and(|(of, _)| of == plugin)
}

/// Whether a pattern covers an action.
#[must_use]
pub fn covers(pattern: &str, plugin: &str, action: &str) -> bool {
    match pattern.rsplit_once('.') {
        Some((of, "*")) => of == plugin,
        Some((of, one)) => of == plugin && one == action,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_what_it_says_and_nothing_that_looks_like_it() {
        assert!(covers("files.*", "files", "read") && covers("files.read", "files", "read"));
        for pattern in ["files.read", "file.*", "files", "*", "*.*", "files.re*", "files.", ".read", ""] {
            assert!(!covers(pattern, "files", "write"), "{pattern}");
        }
        assert!(covers_some("files.read", "files") && covers_some("files.*", "files"));
        assert!(!covers_some("files", "files") && !covers_some("file.*", "files"));
    }

    #[test]
    fn what_is_no_pattern_is_known() {
        for pattern in ["files.*", "files.read", "a-1.B_c-2"] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        let long = format!("{}.x", "a".repeat(65));
        for pattern in
            ["files", "*", "*.*", "*.read", "files.re*", "Files.read", "a.b.c", "files.", ".read", &long]
        {
            assert!(!is_pattern(pattern), "{pattern}");
        }
    }
}
