//! Which directories are to be looked at, and when. Pure: time is given.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::limits::{DIRTY, SCAN_SHARE, SETTLE, SETTLE_MAX};

/// Directories that wait for a look.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    due: HashMap<PathBuf, Instant>,
    /// How long to wait for directories that did not rest, or took long to look at.
    pauses: HashMap<PathBuf, Duration>,
    everything: Option<Instant>,
}

impl Dirty {
    /// Something happened in a directory.
    pub(super) fn mark(&mut self, directory: &Path, now: Instant) {
        if self.due.contains_key(directory) {
            return;
        }
        if self.due.len() >= DIRTY {
            self.mark_everything(now);
            return;
        }
        let pause = self.pauses.get(directory).copied().unwrap_or(SETTLE);
        self.due.insert(directory.to_owned(), now + pause);
    }

    /// Something happened anywhere.
    pub(super) fn mark_everything(&mut self, now: Instant) {
        self.everything.get_or_insert(now + SETTLE);
    }

    /// A directory was looked at, which took `cost`. One that does not rest is looked at again, after a pause
    /// that doubles each time.
    pub(super) fn looked(&mut self, directory: &Path, is_unsettled: bool, cost: Duration, now: Instant) {
        let by_cost = cost.saturating_mul(SCAN_SHARE).min(SETTLE_MAX);
        if !is_unsettled {
            if by_cost > SETTLE && self.pauses.len() < DIRTY {
                self.pauses.insert(directory.to_owned(), by_cost);
            } else {
                self.pauses.remove(directory);
            }
            return;
        }
        let last = self.pauses.get(directory).copied();
        // The second look comes after the shortest pause: most files rest by then.
        let pause = last.map_or(SETTLE, |last| last.saturating_mul(2)).max(by_cost).min(SETTLE_MAX);
        if self.pauses.len() < DIRTY || last.is_some() {
            self.pauses.insert(directory.to_owned(), pause);
        }
        self.mark(directory, now);
    }

    /// Whether it is time to look at everything; then nothing else waits.
    pub(super) fn take_everything(&mut self, now: Instant) -> bool {
        let is_due = self.everything.is_some_and(|due| due <= now);
        if is_due {
            (self.everything, self.due) = (None, HashMap::new());
        }
        is_due
    }

    /// The directories whose time has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<PathBuf> {
        let due: Vec<PathBuf> =
            self.due.iter().filter(|(_, due)| **due <= now).map(|(path, _)| path.clone()).collect();
        for path in &due {
            self.due.remove(path);
        }
        due
    }

    /// When there is something to do next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.values().copied().chain(self.everything).min()
    }

    /// A directory is gone.
    pub(super) fn forget(&mut self, directory: &Path) {
        self.due.remove(directory);
        self.pauses.remove(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-67
    #[test]
    fn a_directory_that_never_rests_is_looked_at_ever_more_rarely() {
        let (mut dirty, dir) = (Dirty::default(), Path::new("/w"));
        let start = Instant::now();
        let (mut now, mut looks) = (start, 0);
        while now < start + Duration::from_secs(60) {
            // A log that grows all the time.
            dirty.mark(dir, now);
            now = dirty.next().expect("it waits").max(now);
            assert_eq!(dirty.take_due(now), [dir]);
            dirty.looked(dir, true, Duration::from_millis(1), now);
            looks += 1;
        }
        assert!(looks < 20, "{looks}");
        dirty.take_due(now + SETTLE_MAX);
        dirty.looked(dir, false, Duration::from_millis(1), now);
        dirty.mark(dir, now);
        assert_eq!(dirty.next(), Some(now + SETTLE));
    }

    // Promises: SHADOW-67
    #[test]
    fn many_directories_become_a_look_at_all() {
        let (mut dirty, now) = (Dirty::default(), Instant::now());
        for n in 0..2 * DIRTY {
            dirty.mark(Path::new(&format!("/w/{n}")), now);
        }
        assert!(dirty.due.len() <= DIRTY && !dirty.take_everything(now));
        assert!(dirty.take_everything(now + SETTLE));
        assert_eq!(dirty.next(), None);
    }

    #[test]
    fn an_expensive_look_is_repeated_later() {
        let (mut dirty, dir, now) = (Dirty::default(), Path::new("/w"), Instant::now());
        dirty.looked(dir, false, Duration::from_millis(100), now);
        dirty.mark(dir, now);
        assert_eq!(dirty.next(), Some(now + Duration::from_secs(2)));
    }
}
