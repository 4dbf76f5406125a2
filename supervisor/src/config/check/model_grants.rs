//! Checks of `models` of a plugin: whether the named models exist, and whether anybody serves them.

use talon_agent_settings::catalog::Catalog;
use talon_plugin_config::document::origin::KeyPath;

use super::Check;
use crate::config::types::{Config, MAX_ALLOWED, MAX_CALLS, MAX_CONCURRENCY, ModelGrant};

/// Leaves the choice to the router.
pub(super) const AUTO: &str = "auto";

impl Check<'_> {
    /// Checks the grants of all plugins.
    pub(super) fn model_grants(&mut self, config: &Config, catalog: Option<&Catalog>) {
        let tools = &config.plugins.tools;
        let path = KeyPath::of(&["plugins", "tools"]);
        let entries = tools.plugins.iter().map(|(name, entry)| ("plugins", name, &entry.grants));
        let overrides = tools.overrides.iter().map(|(name, over)| ("overrides", name, &over.grants));
        let granted: Vec<(KeyPath, &ModelGrant)> = entries
            .chain(overrides)
            .filter_map(|(list, name, grants)| {
                Some((path.key(list).key(name).key("models"), grants.models.as_ref()?))
            })
            .collect();
        for (path, grant) in granted {
            self.model_grant(grant, catalog, &path);
            if !config.runs_agent() {
                let message = "nobody asks models for it, since no agent runs: the plugin gets no socket";
                self.found.warning(&path, message, "configure models, and leave agent.enabled: auto");
            }
        }
    }

    fn model_grant(&mut self, grant: &ModelGrant, catalog: Option<&Catalog>, path: &KeyPath) {
        let ModelGrant { allow, max_calls, max_tokens, timeout, concurrency, own_budget } = grant;
        let allowed = path.key("allow");
        if allow.is_empty() {
            self.problem(&allowed, "names no model", "name one of models.catalog, or auto");
        }
        if allow.len() > MAX_ALLOWED {
            let message = format!("has {} names, and {MAX_ALLOWED} are the most", allow.len());
            self.problem(&allowed, message, "name those that the plugin needs, or auto");
        }
        for (index, name) in allow.iter().take(MAX_ALLOWED).enumerate() {
            let path = allowed.index(index);
            if allow.iter().take(index).any(|earlier| earlier == name) {
                self.problem(&path, "stands there twice", "remove one of them");
            } else if name != AUTO {
                self.model(name, catalog, &path);
            }
        }
        let numbers = [
            ("max_calls", *max_calls, MAX_CALLS),
            ("max_tokens", *max_tokens, 1_000_000),
            ("concurrency", *concurrency, MAX_CONCURRENCY),
        ];
        for (key, number, most) in numbers {
            self.bounded(number, most, &path.key(key));
        }
        talon_plugin_config::entry::check_call_timeout(*timeout, &path.key("timeout"), &mut self.found);
        if let Some(own) = own_budget {
            self.bounded(own.calls_per_day, 1_000_000, &path.key("own_budget").key("calls_per_day"));
        }
    }

    pub(super) fn bounded(&mut self, number: u32, most: u32, path: &KeyPath) {
        if !(1..=most).contains(&number) {
            let message = format!("{number} is not between 1 and {most}");
            self.problem(path, message, "leave the key out for the default");
        }
    }
}
