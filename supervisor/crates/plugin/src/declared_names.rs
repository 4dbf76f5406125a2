//! The names that plugins declare for themselves.
//!
//! Calls are routed only by the configured name, which the registry keeps unique, so two plugins never answer
//! to one name. The declared name is only what a plugin sees on the wire. It may equal any other plugin's:
//! one program under two configured names, with different settings, declares the same name twice, which is
//! useful and safe. One case gets a note for the operator: a plugin that declares the *configured* name of
//! another, because a person who reads its output may take it for that one.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_plugin_config::name::PluginName;
use talon_sanitize::{Sanitized, sanitized};

/// Which plugin declared which name; shared by a registry and its plugins.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeclaredNames(Arc<Mutex<BTreeMap<PluginName, Option<String>>>>);

impl DeclaredNames {
    /// Adds a plugin whose declaration is not known yet.
    pub(crate) fn add(&self, plugin: &PluginName) {
        self.0.lock().insert(plugin.clone(), None);
    }

    pub(crate) fn remove(&self, plugin: &PluginName) {
        self.0.lock().remove(plugin);
    }

    /// Stores what a plugin declared; returns a note if it is another plugin's configured name.
    pub(crate) fn declare(&self, plugin: &PluginName, declared: &str) -> Option<Sanitized> {
        self.0.lock().insert(plugin.clone(), Some(declared.to_owned()));
        self.note(plugin)
    }

    /// A note for the operator about the name that a plugin declared, if it is needed.
    pub(crate) fn note(&self, plugin: &PluginName) -> Option<Sanitized> {
        let table = self.0.lock();
        let declared = table.get(plugin)?.as_deref()?;
        let other = table.keys().find(|other| *other != plugin && other.as_str() == declared)?;
        Some(sanitized!(
            "it calls itself \"{other}\", as another plugin is named; calls for {other} go to that one, calls for \
             {plugin} come here",
            other = other,
            plugin = plugin,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: REG-8
    #[test]
    fn only_another_plugins_configured_name_is_worth_a_note() {
        let name = |text| PluginName::new(text).unwrap();
        let names = DeclaredNames::default();
        for plugin in ["hello", "search-a", "search-b", "evil"] {
            names.add(&name(plugin));
        }
        assert_eq!(names.declare(&name("hello"), "hello"), None);
        assert_eq!(names.declare(&name("search-a"), "code-search"), None);
        assert_eq!(names.declare(&name("search-b"), "code-search"), None);
        assert!(names.declare(&name("evil"), "hello").unwrap().contains("calls for hello go to that one"));
        names.remove(&name("hello"));
        assert_eq!(names.note(&name("evil")), None);
    }
}
