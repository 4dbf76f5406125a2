//! Checks of `state.plugins`: who keeps the plugins' key-values.

use talon_agent_settings::is_pattern;
use talon_plugin_config::document::origin::KeyPath;
use talon_sanitize::nearest;

use super::Check;
use crate::config::types::{Config, PluginStorageEngine};

/// How much of a wrong name a message repeats.
const MAX_SHOWN_CHARS: usize = 129;

impl Check<'_> {
    pub(super) fn plugin_storage(&mut self, config: &Config, path: &KeyPath) {
        let Some(plugins) = &config.state.plugins else { return };
        let key = path.key("action");
        let action = match (plugins.engine, &plugins.action) {
            (PluginStorageEngine::Plugin, Some(action)) => action,
            (PluginStorageEngine::Plugin, None) => {
                let help = "name the action that keeps it, as plugin.action, or set engine: sqlite";
                return self.problem(&key, "is missing, which engine: plugin needs", help);
            }
            (PluginStorageEngine::Sqlite | PluginStorageEngine::Postgres, Some(_)) => {
                let help = "set engine: plugin to use it, or remove it";
                return self.found.warning(&key, "is not used by this engine".to_owned(), help);
            }
            (PluginStorageEngine::Sqlite | PluginStorageEngine::Postgres, None) => return,
        };
        let named = is_pattern(action) && !action.ends_with(".*");
        let Some((plugin, _)) = action.split_once('.').filter(|_| named) else {
            let shown: String = action.chars().take(MAX_SHOWN_CHARS).collect();
            return self.problem(&key, format!("{shown:?} is no action"), "write plugin.action");
        };
        let tools = &config.plugins.tools;
        if !tools.plugins.contains_key(plugin) {
            let help = match nearest(plugin, tools.plugins.keys().map(String::as_str)).first() {
                Some(near) => format!("did you mean {near}?"),
                None => "add it under plugins.tools.plugins".to_owned(),
            };
            let message = format!("no plugin under plugins.tools.plugins is called {plugin}");
            return self.problem(&key, message, &help);
        }
        let own = [
            tools.plugins.get(plugin).and_then(|entry| entry.grants.state_quota),
            tools.overrides.get(plugin).and_then(|over| over.grants.state_quota),
        ];
        if own.iter().any(Option::is_some) {
            let message = format!("{plugin} has a state_quota, and would keep its state in itself");
            self.problem(&key, message, "remove the state_quota: a storage backend has no state of its own");
        }
    }
}
