//! What operators read about a declaration that differs from what was approved.

use talon_plugin_config::name::{PLUGIN_TEXTS, PluginName};
use talon_sanitize::{Raw, Sanitized, sanitized};

/// A change that operators should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeNotice {
    /// The action, if the notice is about one.
    pub(crate) action: Option<String>,
    /// What changed, in a form for programs.
    pub(crate) change: String,
    /// A message for people. It ends with what to do next.
    pub(crate) text: Sanitized,
}

impl ChangeNotice {
    pub(super) fn changed_texts(plugin: &PluginName, blocks: bool) -> Self {
        let plugin = Raw::of(plugin).line();
        let then = if blocks { "; callers are not shown it until then" } else { "" };
        let text = sanitized!(
            "what it says about itself (description, prompt, glossary, articles) is not what was approved: look at it with `talon \
             plugin show {}`, approve it with `talon plugin approve {}`{}",
            plugin,
            plugin,
            then
        );
        Self { action: None, change: PLUGIN_TEXTS.to_owned(), text }
    }

    pub(super) fn changed_action(plugin: &PluginName, blocks: bool, action: &str, what: &str) -> Self {
        let plugin = Raw::of(plugin).line();
        let action_shown = Raw::from(action).line();
        let shown = Raw::from(what).line();
        let then = if blocks { "; calls of it are refused until then" } else { "" };
        let text = sanitized!(
            "action {} is not what was approved ({}): look at it with `talon plugin show {}`, approve it with `talon plugin \
             approve {}`{}",
            action_shown,
            shown,
            plugin,
            plugin,
            then
        );
        Self { action: Some(action.to_owned()), change: what.to_owned(), text }
    }

    pub(super) fn unusable_record(plugin: &PluginName, blocks: bool, problem: &Sanitized) -> Self {
        let then =
            if blocks { "calls are refused until then" } else { "changes cannot be detected until then" };
        let plugin = Raw::of(plugin).line();
        let text = sanitized!(
            "what was approved of its actions is not known: {}; look at them with `talon plugin show {}` and approve them anew \
             with `talon plugin approve {}`; {}",
            problem,
            plugin,
            plugin,
            then
        );
        Self { action: None, change: "record".to_owned(), text }
    }
}
