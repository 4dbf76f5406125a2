//! Which watchers were heard, and what they cannot watch. In memory alone: after a restart each is heard within a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use talon_guard::Raw;
use tokio::time::Instant;

use super::record::unix_ms;

/// How many watchers are remembered. 1000: a person has one. Beyond it the one that was heard longest ago is forgotten.
const MAX_WATCHERS: usize = 1000;
/// For how long a watcher counts as connected after it was heard. 5 minutes: it speaks once a minute, and some requests may be lost.
const CONNECTED: Duration = Duration::from_secs(5 * 60);
/// How many limits of one watcher are told; it has five kinds of them.
pub(super) const MAX_LIMITS: usize = 8;
pub(super) const MAX_LIMIT_BYTES: usize = 512;
/// How many limits of all watchers are told together.
const MAX_ALL_LIMITS: usize = 16;

/// The watchers, by their person.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<BTreeMap<String, HeardWatcher>>);

/// When a watcher was heard last, and what it said.
#[derive(Debug, Clone)]
pub(super) struct HeardWatcher {
    at: Instant,
    pub(super) unix_ms: u64,
    pub(super) limits: Vec<String>,
}

/// All watchers together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatcherSummary {
    pub(super) watchers: u32,
    pub(super) connected: u32,
    pub(super) seen_unix_ms: Option<u64>,
    pub(super) limits: Vec<String>,
}

impl Watchers {
    /// A person's watcher sent something.
    pub(super) fn hear(&self, sender: &str, limits: &[String]) {
        // What is cut ends with an ellipsis.
        let most = MAX_LIMIT_BYTES - '…'.len_utf8();
        let line = |text: &String| Raw::from(text.as_str()).line_within(most).into_string();
        let limits = limits.iter().take(MAX_LIMITS).map(line).collect();
        let mut heard = self.0.lock();
        heard.insert(sender.to_owned(), HeardWatcher { at: Instant::now(), unix_ms: unix_ms(), limits });
        if heard.len() > MAX_WATCHERS
            && let Some(oldest) = heard.iter().min_by_key(|(_, one)| one.at).map(|(name, _)| name.clone())
        {
            heard.remove(&oldest);
        }
    }

    /// The watcher of a person.
    pub(super) fn of(&self, sender: &str) -> Option<HeardWatcher> {
        self.0.lock().get(sender).cloned()
    }

    /// The person is forgotten.
    pub(super) fn forget(&self, sender: &str) {
        self.0.lock().remove(sender);
    }

    /// Those of others are forgotten; who is there is heard again within a minute.
    pub(super) fn keep(&self, is_kept: impl Fn(&str) -> bool) {
        self.0.lock().retain(|sender, _| is_kept(sender));
    }

    pub(super) fn summary(&self) -> WatcherSummary {
        let heard = self.0.lock();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let limits: BTreeSet<&String> = heard.values().flat_map(|one| &one.limits).collect();
        WatcherSummary {
            watchers: count(heard.len()),
            connected: count(heard.values().filter(|one| one.at.elapsed() < CONNECTED).count()),
            seen_unix_ms: heard.values().map(|one| one.unix_ms).max(),
            limits: limits.into_iter().take(MAX_ALL_LIMITS).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-35
    #[tokio::test(start_paused = true)]
    async fn a_watcher_counts_as_connected_for_some_minutes_and_no_memory_grows() {
        let watchers = Watchers::default();
        assert_eq!(watchers.summary(), WatcherSummary::default());
        watchers.hear("ada", &["too many\nwatches".to_owned(), "x".repeat(9000)]);
        tokio::time::advance(Duration::from_secs(200)).await;
        watchers.hear("bob", &vec!["another".to_owned(); 99]);
        let summary = watchers.summary();
        assert_eq!((summary.watchers, summary.connected, summary.limits.len()), (2, 2, 3));
        assert!(summary.limits.iter().all(|line| line.len() <= MAX_LIMIT_BYTES && !line.contains('\n')));
        tokio::time::advance(Duration::from_secs(150)).await;
        assert_eq!(watchers.summary().connected, 1);
        // What it can watch again is no longer told.
        watchers.hear("ada", &[]);
        assert_eq!(watchers.of("ada").map(|one| one.limits), Some(Vec::new()));
        assert_eq!(watchers.summary().connected, 2);
        tokio::time::advance(Duration::from_secs(1)).await;
        (0..2 * MAX_WATCHERS).for_each(|n| watchers.hear(&n.to_string(), &[]));
        assert_eq!(watchers.summary().watchers as usize, MAX_WATCHERS);
        assert!(watchers.of("bob").is_none(), "it was heard longest ago");
        watchers.forget("1999");
        assert!(watchers.of("1999").is_none());
    }
}
