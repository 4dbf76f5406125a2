//! Changes of what a plugin lists besides its actions, and how often they are published.

use std::time::Duration;

use talon_proto::notices::ListsChanged;
use tokio::time::Instant;

/// The shortest interval between two publications of one process: what changes in between is merged. Clients list
/// again after each, which is a call of the plugin.
const INTERVAL: Duration = Duration::from_secs(1);

/// Merges changes of one process.
#[derive(Debug, Default)]
pub(crate) struct ListsThrottle {
    pending: ListsChanged,
    published: Option<Instant>,
}

impl ListsThrottle {
    pub(crate) fn record(&mut self, changed: &ListsChanged) {
        self.pending.resources |= changed.resources;
        self.pending.prompts |= changed.prompts;
    }

    /// When the pending changes are due; `None` if there are none.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let is_pending = self.pending.resources || self.pending.prompts;
        is_pending.then(|| self.published.map_or(now, |published| published + INTERVAL))
    }

    /// Takes the pending changes if they are due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<ListsChanged> {
        if self.due(now)? > now {
            return None;
        }
        self.published = Some(now);
        Some(std::mem::take(&mut self.pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: NOTICE-6
    #[test]
    fn a_flood_is_merged_into_one_publication_a_second() {
        let (mut throttle, now) = (ListsThrottle::default(), Instant::now());
        assert_eq!((throttle.due(now), throttle.take_due(now)), (None, None));
        throttle.record(&ListsChanged { resources: true, prompts: false });
        assert_eq!(throttle.take_due(now), Some(ListsChanged { resources: true, prompts: false }));
        for _ in 0..1000 {
            throttle.record(&ListsChanged { resources: true, prompts: false });
            throttle.record(&ListsChanged { resources: false, prompts: true });
            throttle.record(&ListsChanged::default());
            assert_eq!(throttle.take_due(now + INTERVAL / 2), None);
        }
        assert_eq!(throttle.due(now), Some(now + INTERVAL));
        assert_eq!(throttle.take_due(now + INTERVAL), Some(ListsChanged { resources: true, prompts: true }));
        assert_eq!(throttle.due(now + INTERVAL), None);
    }
}
