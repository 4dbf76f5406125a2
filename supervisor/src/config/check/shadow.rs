//! Checks of `shadow`.

use talon_agent_settings::ShadowKeys;
use talon_agent_settings::catalog::Catalog;
use talon_plugin_config::document::origin::KeyPath;

use super::Check;
use crate::config::types::Config;

impl Check<'_> {
    pub(super) fn shadow(&mut self, config: &Config, catalog: Option<&Catalog>, path: &KeyPath) {
        let ShadowKeys {
            enabled,
            model,
            muted_repositories,
            visible,
            budget,
            sources,
            quiet_hours,
            // All their values are valid.
            cooldown: _,
            max_ghosts_per_hour: _,
            boundaries_only: _,
            expires_after: _,
            local_only: _,
            keep_days: _,
        } = &config.shadow;
        if let Some(model) = model {
            self.model(model, catalog, &path.key("model"));
        }
        if quiet_hours.is_some() && config.shadow.quiet().is_none() {
            let message = "is no part of a day";
            self.problem(
                &path.key("quiet_hours"),
                message,
                "write it as \"22:00-07:00\", with two different times",
            );
        }
        let lists = [("muted_repositories", Some(muted_repositories)), ("visible", visible.as_ref())];
        for (name, paths) in lists {
            for (index, one) in paths.into_iter().flatten().enumerate() {
                if !one.is_absolute() {
                    let at = path.key(name).index(index);
                    self.problem(&at, "is no absolute path", "write the whole path");
                }
            }
        }
        for (index, source) in sources.iter().enumerate() {
            let (at, plugin) = (path.key("sources").index(index), source.action.split_once('.'));
            if plugin.is_none_or(|(plugin, action)| plugin.is_empty() || action.is_empty()) {
                self.problem(&at.key("action"), "is no action", "write plugin.action");
            }
            if source.sender.is_empty() {
                self.problem(
                    &at.key("for"),
                    "names nobody",
                    "write a sender, as `talon session list` shows them",
                );
            }
        }
        if *enabled && config.models.providers.0.is_empty() {
            self.found.warning(
                &path.key("enabled"),
                "observations are taken, and no model can be asked about them",
                "name a provider under models.providers, and its models under models.catalog",
            );
        }
        if *enabled && budget.tokens_per_day < TOKENS_OF_A_QUESTION {
            self.found.warning(
                &path.key("budget").key("tokens_per_day"),
                "is less than one question takes, so that none is asked",
                "write at least 3000",
            );
        }
    }
}

/// What a question takes at most, with its answer.
const TOKENS_OF_A_QUESTION: u32 = 3000;
