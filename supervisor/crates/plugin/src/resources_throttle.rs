//! Which resources of a plugin changed, and how often that is published.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

use talon_proto::notices::ResourcesUpdated;
use tokio::time::Instant;

/// The shortest interval between two publications of one process, so that a resource is published at most once in it. Clients
/// read a resource again after each, which is a call of the plugin.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many resources are published in an interval; the others wait for the next. Each is an event, of which a follower may lag
/// 4096 behind.
const MAX_PUBLISHED: usize = 64;
/// How many resources may wait: as many as `talon-mcp-bridge` lets clients follow. Further ones are dropped and counted.
const MAX_PENDING: usize = 256;
/// The longest address, in bytes, as `talon.plugin.v1` has it; a longer one is dropped and counted.
const MAX_URI_BYTES: usize = 2048;

/// Merges the changes of one process.
#[derive(Debug, Default)]
pub(crate) struct ResourcesThrottle {
    pending: BTreeSet<String>,
    /// Up to which address they were published last, so that each has its turn.
    after: String,
    published: Option<Instant>,
}

impl ResourcesThrottle {
    /// Records what changed; returns how many addresses were dropped.
    pub(crate) fn record(&mut self, updated: ResourcesUpdated) -> u64 {
        let mut dropped = 0;
        for uri in updated.uris {
            let fits = !uri.is_empty() && uri.len() <= MAX_URI_BYTES;
            if fits && (self.pending.len() < MAX_PENDING || self.pending.contains(&uri)) {
                self.pending.insert(uri);
            } else {
                dropped += 1;
            }
        }
        dropped
    }

    /// When the pending changes are due; `None` if there are none.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let is_pending = !self.pending.is_empty();
        is_pending.then(|| self.published.map_or(now, |published| published + INTERVAL))
    }

    /// Takes the addresses that are due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<String> {
        if self.due(now).is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.published = Some(now);
        let from = (Bound::Excluded(self.after.as_str()), Bound::Unbounded);
        let rest = self.pending.range::<str, _>(from);
        let first = self.pending.range::<str, _>((Bound::Unbounded, Bound::Included(self.after.as_str())));
        let taken: Vec<String> = rest.chain(first).take(MAX_PUBLISHED).cloned().collect();
        for uri in &taken {
            self.pending.remove(uri);
        }
        self.after = taken.last().cloned().unwrap_or_default();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(uris: impl IntoIterator<Item = String>) -> ResourcesUpdated {
        ResourcesUpdated { uris: uris.into_iter().collect() }
    }

    // Promises: MCP-53
    #[test]
    fn a_flood_publishes_each_resource_once_a_second_and_each_has_its_turn() {
        let (mut throttle, now) = (ResourcesThrottle::default(), Instant::now());
        assert_eq!((throttle.due(now), throttle.take_due(now)), (None, Vec::new()));
        throttle.record(updated(["x:1".to_owned()]));
        assert_eq!(throttle.take_due(now), ["x:1"]);
        let all = || (0..MAX_PENDING).map(|number| format!("x:{number:03}"));
        let mut published = BTreeSet::new();
        for second in 1..=4 {
            for _ in 0..100 {
                assert_eq!(throttle.record(updated(all())), 0);
            }
            let at = now + INTERVAL * second;
            assert_eq!(throttle.take_due(at - INTERVAL / 2), Vec::<String>::new());
            let taken = throttle.take_due(at);
            assert_eq!(taken.len(), MAX_PUBLISHED);
            published.extend(taken);
        }
        assert_eq!(published.len(), MAX_PENDING, "those that change all the time keep none waiting");
    }

    // Promises: MCP-53
    #[test]
    fn what_is_too_much_or_too_long_is_dropped_and_counted() {
        let mut throttle = ResourcesThrottle::default();
        let many = updated((0..MAX_PENDING + 7).map(|number| format!("x:{number}")));
        assert_eq!(throttle.record(many.clone()), 7);
        assert_eq!(throttle.record(many), 7, "those that wait are no further ones");
        assert_eq!(throttle.record(updated([String::new(), "u".repeat(MAX_URI_BYTES + 1)])), 2);
    }
}
