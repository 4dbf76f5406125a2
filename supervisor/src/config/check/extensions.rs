//! Checks of `extensions`, by the crate that has its types.

use talon_agent_settings::BUILT_IN_SUBAGENTS;
use talon_extensions::check::{Environment, check};
use talon_extensions::{Finding, Severity};
use talon_plugin_config::document::origin::KeyPath;

use super::Check;
use crate::config::lua;
use crate::config::types::Config;

impl Check<'_> {
    pub(super) fn extensions(&mut self, config: &Config, path: &KeyPath) {
        let tools = &config.plugins.tools;
        let plugins = tools.plugins.keys().chain(tools.overrides.keys()).map(String::as_str);
        let plugins: Vec<&str> = plugins.chain(config.plugins.lua.as_ref().map(|_| lua::PLUGIN)).collect();
        let own = config.agent.subagents.agents.keys().map(String::as_str);
        let subagents: Vec<&str> = BUILT_IN_SUBAGENTS.into_iter().chain(own).collect();
        let around = Environment {
            plugins: &plugins,
            has_plugin_dir: tools.plugin_dir.is_some(),
            subagents: &subagents,
        };
        for Finding { severity, list, index, key, message, help } in check(&config.extensions, around) {
            let list = path.key(list);
            let entry = index.map_or_else(|| list.clone(), |index| list.index(index));
            let key = key.map_or_else(|| entry.clone(), |key| entry.key(key));
            match severity {
                Severity::Problem => self.problem(&key, message, &help),
                Severity::Warning => self.found.warning(&key, message, &help),
            }
        }
        for (index, channel) in config.extensions.channels.iter().enumerate() {
            let plugin = channel.action.split('.').next().unwrap_or_default();
            if tools.plugins.get(plugin).is_some_and(|plugin| plugin.grants.events.is_none()) {
                let key = path.key("channels").index(index).key("action");
                let message = format!("{plugin} may tell no events, so that nobody is heard");
                self.found.warning(&key, message, "give its entry events: { per_minute: 600 }");
            }
        }
        if !config.extensions.is_empty() && !config.runs_agent() {
            let message = "without the agent, which calls them, they do nothing";
            self.found.warning(path, message, "set agent.enabled: auto");
        }
    }
}
