//! The keys of one entry of `channels`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_agent_settings::TimeSpan;
use talon_schedule::Interval;

/// What stands for everybody in a list of ids.
const ANYBODY: &str = "*";

/// Which messages of a group are for the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Those that mention it: by the channel's own mark, or by one of its names.
    #[default]
    Mention,
    /// All.
    Always,
}

/// A channel: a place where people talk to the agent, such as a chat service. A plugin tells what they write as events, and its action
/// brings the answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelEntry {
    /// The action that sends, as `plugin.action`. It has to declare the role `channel`, and its plugin needs `events`.
    #[schemars(example = &"telegram.channel")]
    pub action: String,
    /// The channel's name. Its senders are `gw:NAME/ID`, and its groups `gw:NAME/group:ID`: in `agent.allow`, `agent.identities`,
    /// `agent.groups` and sessions.
    #[schemars(example = &"telegram")]
    pub name: String,
    /// The ids of senders who may talk to the agent, directly and in groups; `*` for everybody who finds the channel. Nobody else gets a turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<String>,
    /// The ids of groups in which the agent listens; `*` for every group to which somebody adds it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The ids of senders who may decide approvals of their own conversations with a button. In groups `agent.groups` says who may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approve: Vec<String>,
    /// Which messages of a group are for the agent. By default as `gateway.routing.activation` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// By which names the agent is mentioned in groups, beside the channel's own mark. By default those of `gateway.routing.names`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// How long one call of the action may take; at most 5 minutes.
    #[serde(default = "default_deadline")]
    pub deadline: TimeSpan,
    /// How long an answer is tried to be sent. Then the log says that it was given up, and the session still has it. At most 30 days.
    #[serde(default = "default_give_up_after")]
    pub give_up_after: Interval,
}

fn default_deadline() -> TimeSpan {
    TimeSpan::from_secs(60)
}

fn default_give_up_after() -> Interval {
    const DAY: u32 = 24 * 60 * 60;
    Interval::from_secs(DAY)
}

impl ChannelEntry {
    /// How long one call may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.get()
    }

    /// Whether a sender may talk to the agent.
    #[must_use]
    pub fn lets_speak(&self, sender: &str) -> bool {
        lists(&self.senders, sender)
    }

    /// Whether the agent listens in a group.
    #[must_use]
    pub fn listens_in(&self, group: &str) -> bool {
        lists(&self.groups, group)
    }

    /// Whether a sender may decide approvals of its own conversation.
    #[must_use]
    pub fn lets_approve(&self, sender: &str) -> bool {
        // Never everybody: a decision is a named person's.
        self.approve.iter().any(|listed| listed == sender)
    }

    /// Whether a message of a group is for the agent. `marked` says that the channel itself marks it so.
    #[must_use]
    pub fn is_addressed(&self, text: &str, marked: bool) -> bool {
        self.activation.unwrap_or_default() == Activation::Always || marked || mentions(text, &self.names)
    }
}

fn lists(ids: &[String], id: &str) -> bool {
    ids.iter().any(|listed| listed == ANYBODY || listed == id)
}

/// Whether a text has one of these names as a word, in any case, with or without `@`.
#[must_use]
pub fn mentions(text: &str, names: &[String]) -> bool {
    let text = text.to_lowercase();
    names.iter().map(|name| name.trim_start_matches('@').to_lowercase()).filter(|name| !name.is_empty()).any(
        |name| {
            text.match_indices(&name).any(|(at, found)| {
                let before = text[..at].chars().next_back();
                let after = text[at + found.len()..].chars().next();
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                !before.is_some_and(is_word) && !after.is_some_and(is_word)
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(more: serde_json::Value) -> ChannelEntry {
        let mut entry = serde_json::json!({"action": "telegram.channel", "name": "telegram"});
        entry.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        serde_json::from_value(entry).expect("an entry")
    }

    // Promises: GW-200, GW-201
    #[test]
    fn nobody_speaks_who_is_not_listed_and_nobody_approves_who_is_not_named() {
        let closed = entry(serde_json::json!({}));
        assert!(!closed.lets_speak("1") && !closed.listens_in("-7") && !closed.lets_approve("1"));
        let open = entry(serde_json::json!({"senders": ["*"], "groups": ["-7"], "approve": ["*", "2"]}));
        assert!(open.lets_speak("1") && open.listens_in("-7") && !open.listens_in("-8"));
        assert!(!open.lets_approve("1") && open.lets_approve("2"));
    }

    // Promises: GW-202
    #[test]
    fn a_group_message_is_for_the_agent_if_it_is_marked_or_names_it() {
        let named = entry(serde_json::json!({"names": ["@Talon", "der Bot"]}));
        for (text, addressed) in [
            ("talon, what is new?", true),
            ("ask @TALON!", true),
            ("hey Der Bot", true),
            ("talons are claws", false),
            ("@talon_bot", false),
            ("what is new?", false),
        ] {
            assert_eq!(named.is_addressed(text, false), addressed, "{text}");
        }
        assert!(named.is_addressed("what is new?", true));
        assert!(!entry(serde_json::json!({})).is_addressed("talon", false));
        assert!(entry(serde_json::json!({"activation": "always"})).is_addressed("what is new?", false));
    }

    proptest! {
        // Promises: GW-202
        #[test]
        fn a_name_is_found_as_a_word_wherever_it_stands(before in ".{0,20}", name in "[a-zäß]{1,8}", after in ".{0,20}") {
            let text = format!("{before} {} {after}", name.to_uppercase());
            prop_assert!(mentions(&text, &[name.to_uppercase()]));
            prop_assert!(!mentions(&text, &[]) && !mentions(&text, &["@".to_owned()]));
        }
    }
}
