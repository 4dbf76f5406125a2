//! Which resources of which plugins are followed, by how many. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_sanitize::Raw;
use tokio::sync::Mutex;

use crate::context::ResourcePlace;

/// How much of an address the supervisor's events hold, in bytes; addresses are shorter.
const MAX_EVENT_FIELD_BYTES: usize = 4096;

/// All plugins of which somebody follows something.
#[derive(Debug, Default)]
pub(super) struct Registry(BTreeMap<String, FollowedPlugin>);

#[derive(Debug, Default)]
struct FollowedPlugin {
    /// Held by whoever tells the plugin, so that what it was told last is what is wanted.
    turn: Arc<Mutex<()>>,
    resources: BTreeMap<String, FollowedResource>,
    /// Changes may have been missed since the plugin was told last.
    has_gap: bool,
    /// Whether it holds a lease of ours.
    has_lease: bool,
}

#[derive(Debug, Default)]
struct FollowedResource {
    followers: usize,
    /// The plugin has agreed.
    confirmed: bool,
}

impl Registry {
    /// Adds a follower; returns whether the plugin follows that resource already.
    pub(super) fn add(&mut self, place: &ResourcePlace) -> bool {
        let plugin = self.0.entry(place.plugin.clone()).or_default();
        let resource = plugin.resources.entry(place.uri.clone()).or_default();
        resource.followers += 1;
        resource.confirmed
    }

    /// Removes one; returns whether it was the last of that resource.
    pub(super) fn remove(&mut self, place: &ResourcePlace) -> bool {
        let Some(plugin) = self.0.get_mut(&place.plugin) else { return false };
        let Some(resource) = plugin.resources.get_mut(&place.uri) else { return false };
        resource.followers -= 1;
        if resource.followers > 0 {
            return false;
        }
        plugin.resources.remove(&place.uri);
        true
    }

    /// Removes all; returns the plugins that have to be told.
    pub(super) fn clear(&mut self) -> Vec<String> {
        for plugin in self.0.values_mut() {
            plugin.resources.clear();
        }
        self.plugins()
    }

    pub(super) fn plugins(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Whoever tells a plugin takes its turn first.
    pub(super) fn turn(&mut self, plugin: &str) -> Arc<Mutex<()>> {
        Arc::clone(&self.0.entry(plugin.to_owned()).or_default().turn)
    }

    /// What a plugin has to be told; nothing if it knows nothing of us, and need not.
    pub(super) fn wanted(&mut self, plugin: &str) -> Option<Vec<String>> {
        let known = self.0.get(plugin)?;
        if known.resources.is_empty() && !known.has_lease {
            self.0.remove(plugin);
            return None;
        }
        Some(known.resources.keys().cloned().collect())
    }

    /// The plugin was told `asked`, and refuses those at these positions. Returns what may have changed unnoticed.
    pub(super) fn confirm(
        &mut self,
        plugin: &str,
        asked: &[String],
        refused: &[usize],
    ) -> Vec<ResourcePlace> {
        let Some(known) = self.0.get_mut(plugin) else { return Vec::new() };
        known.has_lease = refused.len() < asked.len();
        for (at, uri) in asked.iter().enumerate() {
            if let Some(resource) = known.resources.get_mut(uri) {
                resource.confirmed = !refused.contains(&at);
            }
        }
        let has_gap = std::mem::take(&mut known.has_gap);
        let missed = known.resources.keys().filter(|_| has_gap);
        missed.map(|uri| ResourcePlace { plugin: plugin.to_owned(), uri: uri.clone() }).collect()
    }

    /// It could not be told. Without resources its lease is left to end.
    pub(super) fn failed(&mut self, plugin: &str) {
        if let Some(known) = self.0.get_mut(plugin)
            && known.resources.is_empty()
        {
            known.has_lease = false;
        }
    }

    /// Changes of this plugin may have been missed; returns whether anybody wants to know.
    pub(super) fn mark_gap(&mut self, plugin: &str) -> bool {
        let Some(known) = self.0.get_mut(plugin) else { return false };
        known.has_gap = true;
        true
    }

    /// The followed resource that an event names: in it addresses are sanitized.
    pub(super) fn find(&self, plugin: &str, said: &str) -> Option<ResourcePlace> {
        let resources = &self.0.get(plugin)?.resources;
        let shown = |uri: &String| Raw::from(uri).line_within(MAX_EVENT_FIELD_BYTES);
        let uri = resources
            .get_key_value(said)
            .map(|(uri, _)| uri)
            .or_else(|| resources.keys().find(|uri| shown(uri).as_str() == said))?;
        Some(ResourcePlace { plugin: plugin.to_owned(), uri: uri.clone() })
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
