//! Changed files, followed: plugins with `watch`, the plugin directory with `plugins.tools.watch`, the config file with
//! `reload.watch`.
//!
//! The kernel only says *where* something happened (`places`); what it means is found by looking (`look`). Something is taken once
//! two looks in a row found the same (`settle`), so that a file that is being written is not taken half. What was tried and failed
//! is not tried again until it changes again.
//!
//! | what happens | what is done |
//! |---|---|
//! | a watched plugin's file, directory or manifest changes | it is replaced beside the old one |
//! | it vanishes, or is refused now | what runs goes on, and it is said once |
//! | a new one comes into `plugin_dir` | it is registered |
//! | one goes from `plugin_dir` | it is deregistered: its calls finish, and it stops |
//! | `plugin_dir` itself vanishes | its plugins go on, and it is said once; it is looked at again when it comes back |
//! | the config file changes | it is read anew |
//! | events were lost | everything is looked at |

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

/// The time between something that happened and the first look, and then between looks until two agree. Half a second outlasts
/// what editors, compilers and copies leave between two writes, and is over before a person has turned to the terminal.
const QUIET: Duration = Duration::from_millis(500);

/// What is followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Config,
    PluginDir,
    Plugin(PluginName),
    /// Something in the plugin directory that is refused and no plugin that runs.
    Stranger(PathBuf),
}

/// Follows files until what is returned is dropped.
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
        // When to look next; nothing is looked at while nothing happens.
        let mut next: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.places.happened() => {
                    next.get_or_insert_with(|| Instant::now() + QUIET);
                }
                Ok(()) = reloads.changed() => {
                    // What is followed may be something else now, and nothing was told while the places were changed.
                    self.follow_what_is_there().await;
                    next.get_or_insert_with(|| Instant::now() + QUIET);
                }
                () = until(next) => {
                    next = self.look().await.then(|| Instant::now() + QUIET);
                }
            }
        }
    }

    /// Takes for granted what is followed from now on and was not before.
    async fn follow_what_is_there(&mut self) {
        // First the places, so that nothing happens unseen after the look.
        self.places.watch(self.reloader.config(), self.reloader.clone()).await;
        let found = look::look(&self.reloader).await.how;
        self.known.retain(|subject, _| found.contains_key(subject));
        for (subject, now) in found {
            self.known.entry(subject).or_insert_with(|| Settle::at(now));
        }
    }

    /// Looks at everything that is followed, acts upon what has settled, and says whether something has not.
    async fn look(&mut self) -> bool {
        let Found { how: mut found, refused } = look::look(&self.reloader).await;
        for subject in self.known.keys() {
            found.entry(subject.clone()).or_insert(Now::Gone);
        }
        let (mut open, mut settled) = (false, Vec::new());
        for (subject, now) in found {
            // Something that comes up is something that changed from not being there.
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
            // What is not there is what nothing is known of.
            self.known.retain(|_, known| !known.is_gone());
            self.places.watch(self.reloader.config(), self.reloader.clone()).await;
            // Nothing was told while the places were changed.
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
