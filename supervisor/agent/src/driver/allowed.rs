//! Whether the operator allows a caller to call an action.

use std::sync::Arc;

use talon_agent_settings::{AllowKeys, covers};

/// The lists of `agent.allow` for a turn's sender and its channel. Each list has to cover the call; an empty
/// one covers nothing.
///
/// They are separate from [`super::TurnSpec::within`]: the list sent to the host is bounded, and the host
/// checks plugin calls against its own copy of `agent.allow`. The agent's built-in tools never reach the
/// host, so this is their only check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedTools(Arc<[Vec<String>]>);

impl AllowedTools {
    /// The lists of a sender and a channel; those not named in the configuration are not restricted.
    #[must_use]
    pub fn new(allow: &AllowKeys, sender: &str, channel: &str) -> Self {
        [allow.senders.get(sender), allow.channels.get(channel)].into_iter().flatten().cloned().collect()
    }

    /// The same, and the list of a sender who speaks in the session of another one: of a group. An empty name is nobody.
    #[must_use]
    pub fn and_of(&self, allow: &AllowKeys, member: &str) -> Self {
        self.0.iter().chain(allow.senders.get(member)).cloned().collect()
    }

    /// Whether all lists cover an action.
    #[must_use]
    pub fn cover(&self, plugin: &str, action: &str) -> bool {
        self.0.iter().all(|list| list.iter().any(|pattern| covers(pattern, plugin, action)))
    }
}

impl FromIterator<Vec<String>> for AllowedTools {
    fn from_iter<I: IntoIterator<Item = Vec<String>>>(lists: I) -> Self {
        Self(lists.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_senders_list_and_the_channels_both_have_to_cover_a_call() {
        let keys = |json: &str| serde_json::from_str::<AllowKeys>(json).expect("lists");
        let allow = keys(
            r#"{ "senders": { "ada": ["files.*", "memory.save"], "eve": [] }, "channels": { "cli": ["files.read", "memory.*"] } }"#,
        );
        let may = |sender, channel, plugin, action| {
            AllowedTools::new(&allow, sender, channel).cover(plugin, action)
        };
        assert!(may("ada", "cli", "files", "read") && may("ada", "cli", "memory", "save"));
        assert!(!may("ada", "cli", "files", "write") && !may("ada", "cli", "memory", "search"));
        assert!(may("ada", "else", "files", "write"), "a channel that is not named takes nothing away");
        assert!(!may("eve", "else", "files", "read"), "an empty list covers nothing");
        assert!(may("bob", "else", "x", "y"), "who is not named may call everything");
        let group = AllowedTools::new(&allow, "group", "else");
        assert!(
            group.and_of(&allow, "ada").cover("files", "read")
                && !group.and_of(&allow, "ada").cover("web", "get")
        );
        assert!(
            !group.and_of(&allow, "eve").cover("files", "read")
                && group.and_of(&allow, "").cover("web", "get")
        );
    }
}
