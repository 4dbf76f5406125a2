//! What was approved beside what is declared, and what differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_plugin_client::Capability;
use talon_plugin_config::name::PLUGIN_TEXTS;
use talon_sanitize::Sanitized;

use super::digest::Digests;

/// What was approved beside what is declared.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What was approved; `None` before the first approval.
    pub(super) approved: Option<ApprovedActions>,
    /// Shares its map with `approved` while both are equal. That is nearly always, for each of many plugins.
    pub(super) declared: Arc<BTreeMap<String, Digests>>,
    pub(super) capability: Option<Arc<Capability>>,
    /// The digest of the plugin's own texts, if it has any.
    pub(super) texts: Option<String>,
    /// The digest of the approved texts; empty if none were approved, `None` if they were never checked.
    pub(super) approved_texts: Option<String>,
    /// The digest of the texts that were last reported as changed.
    pub(super) reported_texts: Option<String>,
    /// Changes that were reported, by action.
    pub(super) reported: BTreeMap<String, Digests>,
}

#[derive(Debug)]
pub(super) enum ApprovedActions {
    Known(Arc<BTreeMap<String, Digests>>),
    /// The record cannot be used.
    Unusable(Sanitized),
}

impl State {
    /// One digest over all that an action declares, or of the plugin's own texts.
    pub(super) fn digest(&self, action: &str) -> Option<String> {
        if action == PLUGIN_TEXTS {
            return self.texts.clone();
        }
        self.declared.get(action).map(Digests::combined)
    }

    /// Whether the plugin's own texts differ from the approved ones. Removing all texts is not a change, as
    /// removing an action is none.
    pub(super) fn has_changed_texts(&self) -> bool {
        self.approved.is_some() && self.texts.is_some() && self.texts != self.approved_texts
    }

    /// The actions that differ from the approved ones, with the parts that differ.
    pub(super) fn changed_actions(&self) -> BTreeMap<&String, Vec<&'static str>> {
        let in_what = |name: &String, now: &Digests| match &self.approved {
            Some(ApprovedActions::Known(approved_actions)) => match approved_actions.get(name) {
                Some(before) => now.differing_parts(before),
                None => vec!["new"],
            },
            Some(ApprovedActions::Unusable(_)) => vec!["record"],
            None => Vec::new(),
        };
        self.declared
            .iter()
            .map(|(name, now)| (name, in_what(name, now)))
            .filter(|(_, what)| !what.is_empty())
            .collect()
    }
}
