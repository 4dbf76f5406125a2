//! Checks of channels.

use std::collections::BTreeSet;

use super::auth::OWN_ISSUERS;
use super::findings::{Findings, shown};
use crate::limits::{
    MAX_CHANNEL_IDS, MAX_CHANNEL_NAME_CHARS, MAX_CHANNELS, MAX_FIELD_CHARS, MAX_GIVE_UP_AFTER,
};
use crate::{AuthEntry, ChannelEntry, Role};

/// Channels of our own: at a terminal, of the schedule.
const OWN: [&str; 2] = ["cli", "schedule"];

pub(super) fn check(found: &mut Findings, entries: &[ChannelEntry], providers: &[AuthEntry]) {
    found.check_count(Role::Channel, entries.len(), MAX_CHANNELS, "remove some");
    let mut plugins = BTreeSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let mut of = found.of(Role::Channel, index);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_word =
            (1..=MAX_CHANNEL_NAME_CHARS).contains(&entry.name.len()) && entry.name.chars().all(fits);
        if !is_word || OWN.contains(&entry.name.as_str()) {
            let message = format!("{:?} cannot be the name of a channel", shown(&entry.name));
            let help = "use 1 to 64 of a-z, A-Z, 0-9, '-', '_' and '.', and neither cli nor schedule";
            of.problem("name", message, help);
        } else if OWN_ISSUERS.contains(&entry.name.as_str()) {
            let message = "is the issuer of Talon's own subjects, and its senders would be taken for those";
            of.problem("name", message, "give it another name");
        } else if providers.iter().any(|provider| provider.name() == entry.name) {
            let message = format!(
                "{} is an auth provider too, and its senders would be taken for that one's subjects",
                shown(&entry.name)
            );
            of.problem("name", message, "give one of them another name");
        }
        let plugin = entry.action.split('.').next().unwrap_or_default();
        if !plugins.insert(plugin) {
            let message = format!("another channel has the plugin {} already", shown(plugin));
            of.problem("action", message, "configure the plugin twice, under two names: its events do not say for which channel they are");
        }
        if entry.senders.is_empty() {
            let help = "list the ids of those who may, or '*' for everybody who finds the channel";
            of.warning("senders", "nobody may talk to the agent", help);
        }
        for (key, ids) in [
            ("senders", &entry.senders),
            ("groups", &entry.groups),
            ("approve", &entry.approve),
            ("names", &entry.names),
        ] {
            if ids.len() > MAX_CHANNEL_IDS {
                let message = format!("lists {}, and {MAX_CHANNEL_IDS} are the most", ids.len());
                of.problem(key, message, "write '*', and restrict by agent.allow what they may call");
            }
            let is_id = |id: &String| (1..=MAX_FIELD_CHARS).contains(&id.chars().count());
            if !ids.iter().all(is_id) {
                of.problem(
                    key,
                    format!("has one that is empty or longer than {MAX_FIELD_CHARS} characters"),
                    "correct it",
                );
            }
        }
        if entry.approve.iter().any(|id| id == "*") {
            of.problem(
                "approve",
                "names everybody",
                "name those who may decide: an approval is a known person's",
            );
        }
        of.check_deadline(entry.deadline);
        if entry.give_up_after.get() > MAX_GIVE_UP_AFTER {
            of.problem("give_up_after", format!("{} is more than 30d", entry.give_up_after), "shorten it");
        }
    }
}
