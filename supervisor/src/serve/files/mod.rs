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

mod act;
mod look;
mod places;
mod settle;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use talon_plugin::PluginName;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use self::look::{Found, Now};
use self::places::Places;
use self::settle::Settle;
use super::reload::Reloader;

/// The time from an event to the first scan, and between scans until two agree. Half a second is longer than
/// the pauses between two writes of editors, compilers and copies, and short enough for a person.
const QUIET: Duration = Duration::from_millis(500);

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Config,
    PluginDir,
    Plugin(PluginName),
    /// A refused entry of the plugin directory that is not a running plugin.
    Stranger(PathBuf),
}

/// Watches files until the handle is dropped.
pub(super) fn follow(reloader: Reloader) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let (known, places) = (BTreeMap::new(), Places::new());
        Watch { reloader, known, places }.run().await;
    }))
}

struct Watch {
    reloader: Reloader,
    places: Places,
    known: BTreeMap<Subject, Settle>,
}

impl Watch {
    async fn run(mut self) {
        let mut reloads = self.reloader.subscribe();
        self.follow_what_is_there().await;
        // The time of the next scan; without events there are no scans.
        let mut next: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.places.happened() => {
                    next.get_or_insert_with(|| Instant::now() + QUIET);
                }
                Ok(()) = reloads.changed() => {
                    // The set of watched paths may have changed, and there were no events while it was being
                    // replaced.
                    self.follow_what_is_there().await;
                    next.get_or_insert_with(|| Instant::now() + QUIET);
                }
                () = until(next) => {
                    next = self.look().await.then(|| Instant::now() + QUIET);
                }
            }
        }
    }

    /// Takes the current state of newly watched subjects as their base.
    async fn follow_what_is_there(&mut self) {
        // Watch first, so that no change after the scan is missed.
        self.places.watch(self.reloader.config(), self.reloader.clone()).await;
        let found = look::look(&self.reloader).await.how;
        self.known.retain(|subject, _| found.contains_key(subject));
        for (subject, now) in found {
            self.known.entry(subject).or_insert_with(|| Settle::at(now));
        }
    }

    /// Scans everything, applies settled changes, and returns whether some have not settled.
    async fn look(&mut self) -> bool {
        let Found { how: mut found, refused } = look::look(&self.reloader).await;
        for subject in self.known.keys() {
            found.entry(subject.clone()).or_insert(Now::Gone);
        }
        let (mut open, mut settled) = (false, Vec::new());
        for (subject, now) in found {
            // A new subject counts as changed from absent.
            let known = self.known.entry(subject.clone()).or_insert_with(|| Settle::at(Now::Gone));
            match known.step(now) {
                settle::Step::Same => {}
                settle::Step::Open => open = true,
                settle::Step::Settled(now) => settled.push((subject, now)),
            }
        }
        if !settled.is_empty() {
            self.act(settled).await;
            self.reloader.note_refused(refused);
            // Absent subjects need no entry.
            self.known.retain(|_, known| !known.is_gone());
            self.places.watch(self.reloader.config(), self.reloader.clone()).await;
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
