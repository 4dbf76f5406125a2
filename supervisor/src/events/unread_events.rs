//! Whose the events are that are kept, so that those that go before the agent read them are counted by plugin. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The plugin of each event that is kept, by its number. As many as the log may keep (`events.max_events`).
#[derive(Debug, Default)]
pub(super) struct UnreadEvents(VecDeque<(u64, Arc<str>)>);

impl UnreadEvents {
    /// Takes up an event; numbers go up.
    pub(super) fn push(&mut self, number: u64, plugin: &str) {
        let plugin = match self.0.back() {
            Some((_, last)) if **last == *plugin => Arc::clone(last),
            _ => plugin.into(),
        };
        self.0.push_back((number, plugin));
    }

    /// Leaves out what the log does not keep any more. Returns how many of these each plugin told that come after what the agent
    /// has acknowledged; none if it never acknowledged any, since then there may be no agent.
    pub(super) fn remove_before(
        &mut self,
        oldest: u64,
        acknowledged: Option<u64>,
    ) -> BTreeMap<Arc<str>, u64> {
        let mut unread = BTreeMap::new();
        while let Some((number, plugin)) = self.0.pop_front_if(|(number, _)| *number < oldest) {
            if acknowledged.is_some_and(|acknowledged| number > acknowledged) {
                *unread.entry(plugin).or_default() += 1;
            }
        }
        unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-182
    #[test]
    fn what_goes_unread_is_counted_by_plugin() {
        let mut kept = UnreadEvents::default();
        for (number, plugin) in [(7, "mail"), (8, "mail"), (9, "chat"), (12, "mail"), (13, "chat")] {
            kept.push(number, plugin);
        }
        assert_eq!(kept.remove_before(8, None), BTreeMap::new());
        assert_eq!(kept.remove_before(13, Some(8)), BTreeMap::from([("chat".into(), 1), ("mail".into(), 1)]));
        assert_eq!(kept.remove_before(14, Some(13)), BTreeMap::new());
        assert!(kept.0.is_empty());
    }
}
