//! For whom a message is, and whether it becomes a turn.

use std::collections::BTreeMap;

use talon_agent_settings::{AgentKeys, linked_sender};
use talon_extensions::ChannelEntry;

use super::inbound::MessageSource;
use super::subject::{group_subject, sender_subject};

/// As whom somebody speaks, where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// Whose session it is: the sender's, or the group's.
    pub(super) owner: String,
    /// Who speaks, where that is not the owner.
    pub(super) member: Option<String>,
}

impl Route {
    /// Who speaks.
    pub(super) fn speaker(&self) -> &str {
        self.member.as_deref().unwrap_or(&self.owner)
    }
}

/// Why somebody gets no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drop {
    /// The sender is not listed.
    Sender,
    /// The group is not listed.
    Group,
    /// It is between people.
    NotAddressed,
    /// An id cannot be one.
    Id,
}

impl Drop {
    /// For the log, with what to do.
    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::Sender => "its sender is not in `senders` of the channel",
            Self::Group => "its group is not in `groups` of the channel",
            Self::NotAddressed => "it does not mention the agent (`activation`)",
            Self::Id => "the id of its sender or group is too long",
        }
    }
}

/// Who somebody on a channel is.
///
/// # Errors
/// [`Drop`] if they may not speak.
pub(super) fn route(entry: &ChannelEntry, agent: &AgentKeys, speaker: &MessageSource) -> Result<Route, Drop> {
    if !entry.lets_speak(&speaker.sender_id) {
        return Err(Drop::Sender);
    }
    let own = sender_subject(&entry.name, &speaker.sender_id).ok_or(Drop::Id)?;
    let own = linked(&agent.identities, &own);
    let Some(group) = &speaker.group_id else { return Ok(Route { owner: own, member: None }) };
    if !entry.listens_in(group) {
        return Err(Drop::Group);
    }
    let owner = group_subject(&entry.name, group).ok_or(Drop::Id)?;
    Ok(Route { owner, member: Some(own) })
}

/// Whether a message of somebody who may speak is for the agent.
pub(super) fn is_addressed(
    entry: &ChannelEntry,
    speaker: &MessageSource,
    text: &str,
    mentioned: bool,
) -> bool {
    speaker.group_id.is_none() || entry.is_addressed(text, mentioned)
}

/// Whether who speaks may decide approvals there.
pub(super) fn may_approve(
    entry: &ChannelEntry,
    agent: &AgentKeys,
    speaker: &MessageSource,
    route: &Route,
) -> bool {
    match &route.member {
        None => entry.lets_approve(&speaker.sender_id),
        Some(member) => agent.groups.get(&route.owner).is_some_and(|group| {
            let own = sender_subject(&entry.name, &speaker.sender_id);
            group.approvers.iter().any(|approver| approver == member || Some(approver) == own.as_ref())
        }),
    }
}

fn linked(identities: &BTreeMap<String, Vec<String>>, sender: &str) -> String {
    linked_sender(identities, sender).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn speaker(sender: &str, group: Option<&str>) -> MessageSource {
        MessageSource {
            conversation: "7".to_owned(),
            sender_id: sender.to_owned(),
            sender_name: sender.to_owned(),
            group_id: group.map(str::to_owned),
        }
    }

    fn settings() -> (ChannelEntry, AgentKeys) {
        let entry = json!({"action": "telegram.channel", "name": "telegram", "senders": ["1", "2"], "groups": ["-7"], "approve": ["1"]});
        let agent = json!({
            "identities": {"ada": ["gw:telegram/1"]},
            "groups": {"gw:telegram/group:-7": {"approvers": ["gw:telegram/2"]}},
        });
        (serde_json::from_value(entry).unwrap(), serde_json::from_value(agent).unwrap())
    }

    // Promises: GW-204, GW-205
    #[test]
    fn a_direct_message_is_its_senders_and_a_groups_message_is_the_groups() {
        let (entry, agent) = settings();
        let of = |sender, group| route(&entry, &agent, &speaker(sender, group));
        assert_eq!(of("1", None), Ok(Route { owner: "ada".to_owned(), member: None }));
        assert_eq!(of("2", None), Ok(Route { owner: "gw:telegram/2".to_owned(), member: None }));
        let group = of("1", Some("-7")).unwrap();
        assert_eq!((group.owner.as_str(), group.speaker()), ("gw:telegram/group:-7", "ada"));
        assert_eq!(of("3", None), Err(Drop::Sender));
        assert_eq!(of("3", Some("-7")), Err(Drop::Sender));
        assert_eq!(of("1", Some("-8")), Err(Drop::Group));
    }

    // Promises: GW-201, GW-206
    #[test]
    fn a_group_has_approvers_of_its_own() {
        let (entry, agent) = settings();
        let may = |sender, group| {
            let speaker = speaker(sender, group);
            may_approve(&entry, &agent, &speaker, &route(&entry, &agent, &speaker).unwrap())
        };
        assert!(may("1", None) && !may("2", None));
        assert!(!may("1", Some("-7")) && may("2", Some("-7")));
    }

    #[test]
    fn only_a_group_needs_a_mention() {
        let (entry, _) = settings();
        assert!(is_addressed(&entry, &speaker("1", None), "hello", false));
        assert!(!is_addressed(&entry, &speaker("1", Some("-7")), "hello", false));
        assert!(is_addressed(&entry, &speaker("1", Some("-7")), "hello", true));
    }
}
