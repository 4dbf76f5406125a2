//! Which ids of plugins' events are in the log. Pure.

use std::collections::{HashMap, HashSet, VecDeque};

/// How many ids are known of each plugin, the latest ones: more than a plugin of ours keeps unacknowledged. An older id that comes
/// again counts as new.
const MAX_IDS: usize = 4096;
/// How many plugins have a window: as many as a supervisor has plugins. The ids of further ones are not known.
const MAX_PLUGINS: usize = talon_plugin::MAX_PLUGINS;

/// The latest ids of each plugin.
#[derive(Debug, Default)]
pub(super) struct KnownIds(HashMap<String, Window>);

#[derive(Debug, Default)]
struct Window {
    order: VecDeque<String>,
    ids: HashSet<String>,
}

impl KnownIds {
    pub(super) fn contains(&self, plugin: &str, id: &str) -> bool {
        self.0.get(plugin).is_some_and(|window| window.ids.contains(id))
    }

    pub(super) fn insert(&mut self, plugin: &str, id: &str) {
        if !self.0.contains_key(plugin) && self.0.len() >= MAX_PLUGINS {
            return;
        }
        let window = self.0.entry(plugin.to_owned()).or_default();
        if window.ids.insert(id.to_owned()) {
            window.order.push_back(id.to_owned());
        }
        if window.order.len() > MAX_IDS
            && let Some(oldest) = window.order.pop_front()
        {
            window.ids.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-150
    #[test]
    fn the_latest_ids_of_each_plugin_are_known() {
        let mut known = KnownIds::default();
        known.insert("other", "0");
        for id in 0..=MAX_IDS {
            known.insert("mail", &id.to_string());
            known.insert("mail", &id.to_string());
        }
        assert!(!known.contains("mail", "0") && known.contains("mail", "1") && known.contains("other", "0"));
        assert_eq!(known.0["mail"].order.len(), MAX_IDS);
    }
}
