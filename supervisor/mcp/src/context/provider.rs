//! Which plugins offer resources and prompts.

use std::collections::{BTreeMap, BTreeSet};

use talon_proto::mcp_actions::{
    COMPLETE, PROMPTS_GET, PROMPTS_LIST, RESOURCES_LIST, RESOURCES_READ, RESOURCES_SUBSCRIBE,
    RESOURCES_TEMPLATES,
};
use talon_proto::plugin::PluginCapabilities;

use crate::patterns::Filter;

const ACTIONS: [&str; 7] = [
    RESOURCES_LIST,
    RESOURCES_TEMPLATES,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    PROMPTS_LIST,
    PROMPTS_GET,
    COMPLETE,
];

/// The actions of one plugin for resources and prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provider(BTreeSet<&'static str>);

/// All of them, by plugin.
pub(crate) type Providers = BTreeMap<String, Provider>;

impl Provider {
    /// What a plugin declares and the filter offers. An action of such a name that a model may call is a tool.
    pub(crate) fn of(plugin: &str, capabilities: &PluginCapabilities, filter: &Filter) -> Self {
        let declared = capabilities.actions.iter().filter(|action| action.user_only);
        let known = declared.filter_map(|action| ACTIONS.into_iter().find(|name| *name == action.name));
        Self(known.filter(|name| filter.offers(plugin, name)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, action: &str) -> bool {
        self.0.contains(action)
    }

    /// Whether it reads resources.
    pub(crate) fn reads(&self) -> bool {
        self.has(RESOURCES_READ)
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::plugin::Action;

    use super::*;

    #[test]
    fn what_is_declared_and_offered_counts() {
        let action = |name: &str, user_only| Action { name: name.to_owned(), user_only, ..Action::default() };
        let actions = vec![action(RESOURCES_READ, true), action(PROMPTS_GET, false), action("other", true)];
        let capabilities = PluginCapabilities { actions, ..PluginCapabilities::default() };
        let provider = Provider::of("p", &capabilities, &Filter::default());
        assert!(provider.reads() && !provider.has(PROMPTS_GET) && !provider.has("other"));
        let denied = Filter::new(Vec::new(), vec!["p__*".parse().unwrap()]);
        assert!(Provider::of("p", &capabilities, &denied).is_empty());
    }
}
