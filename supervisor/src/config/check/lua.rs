//! Checks of `plugins.lua`.

use std::io;

use rustix::io::Errno;
use talon_agent_settings::catalog::Catalog;
use talon_extensions::MAX_DEADLINE;
use talon_plugin_config::document::origin::KeyPath;
use talon_plugin_config::files::trust::{is_owned_by_root_or_us, others_may_write};

use super::Check;
use super::model_grants::AUTO;
use crate::config::lua::{PLUGIN, scripts};
use crate::config::types::{Config, LuaScripts};

impl Check<'_> {
    pub(super) fn lua(&mut self, config: &Config, catalog: Option<&Catalog>, path: &KeyPath) {
        let Some(lua) = &config.plugins.lua else { return };
        if config.plugins.tools.plugins.contains_key(PLUGIN) {
            let tools = KeyPath::of(&["plugins", "tools", "plugins"]).key(PLUGIN);
            self.problem(&tools, "has the name of the plugin that runs plugins.lua", "give it another name");
        }
        self.default_model(lua, config, catalog, &path.key("default_model"));
        self.scripts_dir(lua, &path.key("scripts_dir"));
        let limits = lua.scripts.keys().map(|name| (Some(name), lua.limits_of(name)));
        for (name, limits) in [(None, lua.limits)].into_iter().chain(limits) {
            let key = name.map_or_else(|| path.clone(), |name| path.key("scripts").key(name)).key("limits");
            if limits.deadline_seconds() > MAX_DEADLINE.as_secs() {
                let problem = format!(
                    "timeout_seconds, and llm_max_calls times llm_timeout_seconds, are {} s together",
                    limits.deadline_seconds()
                );
                let help = "keep them below 300 s: everybody waits for a script";
                self.problem(&key, problem, help);
            }
        }
        let Some(there) = scripts(lua) else { return };
        let named = lua.order.iter().map(|name| (path.key("order"), name));
        let named = named.chain(lua.scripts.keys().map(|name| (path.key("scripts").key(name), name)));
        for (key, name) in named.filter(|(_, name)| !there.contains(name)) {
            let shown: String = name.chars().take(40).collect();
            self.found.warning(
                &key,
                format!("there is no script {shown}.lua"),
                "put it there, or remove the name",
            );
        }
    }

    /// Without any model scripts run, and only `ctx.llm` fails: a warning, where there are scripts.
    fn default_model(&mut self, lua: &LuaScripts, config: &Config, catalog: Option<&Catalog>, key: &KeyPath) {
        let Some(model) = lua.default_model.as_deref() else { return };
        if !config.models.catalog.0.is_empty() {
            if model != AUTO {
                self.model(model, catalog, key);
            }
        } else if scripts(lua).is_some() {
            self.found.warning(
                key,
                "there is no model, so ctx.llm gives scripts an error",
                "list one under models.catalog, or remove the key",
            );
        }
    }

    fn scripts_dir(&mut self, lua: &LuaScripts, key: &KeyPath) {
        let shown = lua.scripts_dir.display();
        match rustix::fs::stat(&lua.scripts_dir) {
            Err(error @ Errno::NOENT) => {
                let problem = format!("{shown} cannot be read ({error}): no script runs");
                self.found.warning(key, problem, "make the directory, then `talon reload`");
            }
            // Going on without its scripts would let messages pass that they drop.
            Err(error) => self.unreadable(lua, key, &error.into()),
            Ok(stat) => {
                if let Err(error) = std::fs::read_dir(&lua.scripts_dir) {
                    self.unreadable(lua, key, &error);
                }
                if let Some(problem) = others_may_write(&stat) {
                    self.problem(key, format!("{shown}: {problem}"), "what is there looks at all messages");
                } else if !is_owned_by_root_or_us(&stat) {
                    let problem = format!("{shown} belongs to uid {}", stat.st_uid);
                    self.problem(key, problem, "chown it to root: what is there looks at all messages");
                }
            }
        }
    }

    fn unreadable(&mut self, lua: &LuaScripts, key: &KeyPath, error: &io::Error) {
        let problem = format!("{} is there and cannot be read ({error})", lua.scripts_dir.display());
        self.problem(key, problem, "make it a directory that Talon may read, then `talon reload`");
    }
}
