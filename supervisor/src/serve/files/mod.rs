//! Watches files: plugins with `watch`, the plugin directory with `plugins.tools.watch`, the config file with
//! `reload.watch`.
//!
//! The kernel only reports *where* something changed (`watcher`); a scan finds out what changed (`scan`). A
//! change is applied once two scans in a row found the same (`debounce`), so that a file is not read while it
//! is being written. A change that failed is not retried until the file changes again.
//!
//! | change | action |
//! |---|---|
//! | a watched plugin's file, directory or manifest changes | it is replaced: the new process starts beside the old one |
//! | it vanishes, or is refused now | the running process stays, and this is reported once |
//! | a new one appears in `plugin_dir` | it is registered |
//! | one disappears from `plugin_dir` | it is deregistered: its calls finish, and it stops |
//! | `plugin_dir` itself vanishes | its plugins stay, and this is reported once; it is scanned again when it is back |
//! | the config file changes | the configuration is reloaded |
//! | events were lost | everything is scanned |

mod apply;
mod debounce;
mod scan;
mod watcher;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use talon_plugin_config::PluginName;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use self::debounce::Debounce;
use self::scan::{FileScan, SubjectState};
use self::watcher::FileWatcher;
use super::reload::Reloader;

/// The time from an event to the first scan, and between scans until two agree. Half a second is longer than
/// the pauses between two writes of editors, compilers and copies, and short enough for a person.
const SETTLE_INTERVAL: Duration = Duration::from_millis(500);

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Config,
    PluginDir,
    Plugin(PluginName),
    /// A refused entry of the plugin directory that is not a running plugin.
    Unregistered(PathBuf),
}

/// Watches files until the handle is dropped.
pub(super) fn follow(reloader: Reloader) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let (known, places) = (BTreeMap::new(), FileWatcher::new());
        Watch { reloader, subjects: known, watcher: places }.run().await;
    }))
}

struct Watch {
    reloader: Reloader,
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
                debounce::DebounceStep::Unchanged => {}
                debounce::DebounceStep::Pending => open = true,
                debounce::DebounceStep::Settled(now) => settled.push((subject, now)),
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
