//! The loop that scans after an event, and applies what has settled.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::debounce::{Debounce, DebounceStep};
use super::scan::{self, FileScan};
use super::subject::{Subject, SubjectState};
use super::watcher::FileWatcher;
use crate::reload::Reloader;

/// The time from an event to the first scan, and between scans until two agree. Half a second is longer than
/// the pauses between two writes of editors, compilers and copies, and short enough for a person.
const SETTLE_INTERVAL: Duration = Duration::from_millis(500);

/// Watches files until the handle is dropped.
pub(in crate::serve) fn follow(reloader: Reloader) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let (known, places) = (BTreeMap::new(), FileWatcher::new());
        Watch { reloader, subjects: known, watcher: places }.run().await;
    }))
}

/// The watched subjects, each with its last known state.
pub(super) struct Watch {
    pub(super) reloader: Reloader,
    watcher: FileWatcher,
    subjects: BTreeMap<Subject, Debounce>,
}

impl Watch {
    async fn run(mut self) {
        let mut reloads = self.reloader.subscribe();
        self.adopt_existing().await;
        // The time of the next scan; without events there are no scans.
        let mut next: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.watcher.changed() => {
                    next.get_or_insert_with(|| Instant::now() + SETTLE_INTERVAL);
                }
                Ok(()) = reloads.changed() => {
                    // The set of watched paths may have changed, and there were no events while it was being
                    // replaced.
                    self.adopt_existing().await;
                    next.get_or_insert_with(|| Instant::now() + SETTLE_INTERVAL);
                }
                () = until(next) => {
                    next = self.scan().await.then(|| Instant::now() + SETTLE_INTERVAL);
                }
            }
        }
    }

    /// Takes the current state of newly watched subjects as their base.
    async fn adopt_existing(&mut self) {
        // Watch first, so that no change after the scan is missed.
        self.watcher.watch(self.reloader.config(), self.reloader.clone()).await;
        let found = scan::scan(&self.reloader).await.states;
        self.subjects.retain(|subject, _| found.contains_key(subject));
        for (subject, now) in found {
            self.subjects.entry(subject).or_insert_with(|| Debounce::at(now));
        }
    }

    /// Scans everything, applies settled changes, and returns whether some have not settled.
    async fn scan(&mut self) -> bool {
        let FileScan { states: mut found, refused } = scan::scan(&self.reloader).await;
        for subject in self.subjects.keys() {
            found.entry(subject.clone()).or_insert(SubjectState::Gone);
        }
        let (mut open, mut settled) = (false, Vec::new());
        for (subject, now) in found {
            // A new subject counts as changed from absent.
            let known =
                self.subjects.entry(subject.clone()).or_insert_with(|| Debounce::at(SubjectState::Gone));
            match known.step(now) {
                DebounceStep::Unchanged => {}
                DebounceStep::Pending => open = true,
                DebounceStep::Settled(now) => settled.push((subject, now)),
            }
        }
        if !settled.is_empty() {
            self.apply(settled).await;
            self.reloader.note_refused(refused);
            // Absent subjects need no entry.
            self.subjects.retain(|_, known| !known.is_gone());
            self.watcher.watch(self.reloader.config(), self.reloader.clone()).await;
            // There were no events while the watches were being replaced.
            open = true;
        }
        open
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
