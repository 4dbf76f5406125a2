//! The keys of one entry of `notifications`.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_agent_settings::TimeSpan;
use talon_schedule::Interval;

use crate::event::EventKind;
use crate::quiet_hours::QuietHours;

/// A name, since `schemars` reads a list only where another crate switches on `full` of `syn`.
const EXAMPLE_KINDS: [&str; 2] = ["plugin.failed", "approval.*"];

/// A rule: which events go to which action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotificationEntry {
    /// The kinds of events that it takes; `plugin.*` stands for all that begin so. Without any, it takes only what names it:
    /// a job's `deliver`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(example = EXAMPLE_KINDS)]
    pub on: Vec<String>,
    /// The values that fields of an event must have, one of each list: `{ plugin: [search, files] }`.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, Vec<String>>,
    /// The action that delivers them, as `plugin.action`.
    #[schemars(example = &"webhook.send")]
    pub action: String,
    /// The entry's name in logs, in `talon notification list` and for `deliver`, unique in its list. By default the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The arguments, for an action that does not declare the role `notification_sink`. Texts may hold `{{ event.summary }}`,
    /// `{{ event.fields.plugin }}`, `{{ attempt }}` and the other values of the role; a field that an event does not have is
    /// empty. Such an action has delivered if it answers without an error, unless its answer is one of the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// The least time between two events of the same kind and fields. What it holds back is counted in the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_interval: Option<TimeSpan>,
    /// Hours in which events wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietHours>,
    /// How long events are collected, from the first one on, to be sent as one. By default each is sent by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<TimeSpan>,
    /// How long one attempt may take; at most 5 minutes. The plugin's own limit holds beside it.
    #[serde(default = "default_deadline")]
    pub deadline: TimeSpan,
    /// The most attempts after the first. By default as many as `give_up_after` has time for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How long it is tried. Then it is kept, and shown by `talon notification list`. At most 30 days.
    #[serde(default = "default_give_up_after")]
    pub give_up_after: Interval,
}

fn default_deadline() -> TimeSpan {
    TimeSpan::from_secs(30)
}

fn default_give_up_after() -> Interval {
    const DAY: u32 = 24 * 60 * 60;
    Interval::from_secs(DAY)
}

impl NotificationEntry {
    /// An entry for these kinds and this action, with the defaults of all other keys.
    #[must_use]
    pub fn new(on: &[&str], action: impl Into<String>) -> Self {
        Self {
            on: on.iter().map(|kind| (*kind).to_owned()).collect(),
            conditions: BTreeMap::new(),
            action: action.into(),
            name: None,
            args: None,
            min_interval: None,
            quiet: None,
            digest: None,
            deadline: default_deadline(),
            retries: None,
            give_up_after: default_give_up_after(),
        }
    }

    /// The entry's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.action)
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.get()
    }

    /// Whether it takes an event of this kind with these fields.
    #[must_use]
    pub fn takes(&self, kind: EventKind, fields: &BTreeMap<String, String>) -> bool {
        let fits = |(name, values): (&String, &Vec<String>)| {
            fields.get(name).is_some_and(|value| values.contains(value))
        };
        self.on.iter().any(|word| kind.is_selected_by(word)) && self.conditions.iter().all(fits)
    }

    /// Whether it takes events that plugins tell.
    #[must_use]
    pub fn takes_source_events(&self) -> bool {
        self.on.iter().any(|word| EventKind::SourceEvent.is_selected_by(word))
    }

    /// Whether events of this kind are sent in quiet hours.
    #[must_use]
    pub fn is_never_quiet_for(&self, kind: EventKind) -> bool {
        self.quiet.as_ref().is_none_or(|quiet| quiet.except.iter().any(|word| kind.is_selected_by(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_kinds_with_the_fields_that_it_asks_for() {
        let yaml = "{ on: [plugin.*, approval.waiting], where: { plugin: [search, files] }, action: mail.send, \
                    quiet: { from: '22:00', to: '07:00', except: [plugin.failed] } }";
        let entry: NotificationEntry = serde_saphyr::from_str(yaml).expect("an entry");
        let of = |plugin: &str| BTreeMap::from([("plugin".to_owned(), plugin.to_owned())]);
        assert!(entry.takes(EventKind::PluginFailed, &of("search")));
        assert!(entry.takes(EventKind::ApprovalWaiting, &of("files")));
        assert!(!entry.takes(EventKind::PluginFailed, &of("forge")));
        assert!(!entry.takes(EventKind::PluginFailed, &BTreeMap::new()));
        assert!(!entry.takes(EventKind::BudgetWarning, &of("search")));
        assert!(
            entry.is_never_quiet_for(EventKind::PluginFailed)
                && !entry.is_never_quiet_for(EventKind::PluginReady)
        );
        assert_eq!((entry.name(), entry.deadline()), ("mail.send", Duration::from_secs(30)));
        let named = NotificationEntry::new(&[], "mail.send");
        assert!(EventKind::ALL.iter().all(|kind| !named.takes(*kind, &of("search"))));
        assert_eq!(named.give_up_after.get(), Duration::from_secs(86_400));
    }
}
