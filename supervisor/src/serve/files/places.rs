//! Where the kernel tells what happens.
//!
//! Editors and installers write a file beside the old one and move it over that, so what is watched is never a file but the directory
//! it lies in; of a directory plugin, everything below it as well. A directory that is not there is waited for in the nearest one
//! above it that is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use talon_plugin::Plugin;
use tokio::sync::Notify;

use super::super::reload::{Reloader, blocking};
use crate::config::Config;

/// The places that are watched, and the word that something happened in one. There is nothing to overflow here: many events are one
/// word. What overflows in the kernel is told by it, which is that word, too.
pub(super) struct Places {
    told: Arc<Told>,
    /// `None` if the kernel watches nothing for us. Behind a lock because watching a directory reads it, which is done elsewhere.
    watcher: Arc<Mutex<Option<Watched>>>,
}

struct Watched {
    watcher: RecommendedWatcher,
    places: BTreeMap<PathBuf, RecursiveMode>,
    /// What could not be watched and was said.
    said: BTreeSet<PathBuf>,
}

struct Told {
    something: Notify,
    /// What has to do with what is followed; the rest of what happens beside it is not worth a look.
    concerns: Mutex<Vec<PathBuf>>,
}

impl Told {
    fn hear(&self, event: notify::Result<Event>) {
        let concerns = match event {
            // Reading is no change; we do it ourselves at every look.
            Ok(event) => !is_reading(&event.kind) && (event.need_rescan() || self.concern(&event.paths)),
            Err(_) => true,
        };
        if concerns {
            self.something.notify_one();
        }
    }

    fn concern(&self, paths: &[PathBuf]) -> bool {
        let concerns = self.concerns.lock().unwrap_or_else(PoisonError::into_inner);
        // Also what is above it: a directory that comes back brings what is in it.
        paths
            .iter()
            .any(|path| concerns.iter().any(|about| path.starts_with(about) || about.starts_with(path)))
    }
}

fn is_reading(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Access(kind) if *kind != AccessKind::Close(AccessMode::Write))
}

impl Places {
    pub(super) fn new() -> Self {
        let told = Arc::new(Told { something: Notify::new(), concerns: Mutex::default() });
        Self { told, watcher: Arc::default() }
    }

    /// Resolves once something has happened since it last did.
    pub(super) async fn happened(&self) {
        self.told.something.notified().await;
    }

    /// Watches what this configuration wants followed, and nothing else. All of it anew: what was moved away or made again is
    /// another directory under the same name.
    pub(super) async fn watch(&self, config: Arc<Config>, reloader: Reloader) {
        let (told, watcher) = (Arc::clone(&self.told), Arc::clone(&self.watcher));
        blocking(move || {
            let (wanted, concerns) = wanted(&config, &reloader);
            *told.concerns.lock().unwrap_or_else(PoisonError::into_inner) = concerns;
            let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
            if wanted.is_empty() {
                *watcher = None;
                return;
            }
            if watcher.is_none() {
                let told = Arc::clone(&told);
                match notify::recommended_watcher(move |event| told.hear(event)) {
                    Ok(made) => *watcher = Some(Watched::by(made)),
                    Err(error) => tracing::error!(
                        %error,
                        "no file can be watched; see whether fs.inotify.max_user_instances is reached"
                    ),
                }
            }
            if let Some(watcher) = &mut *watcher {
                watcher.watch(wanted);
            }
        })
        .await;
    }
}

impl Watched {
    fn by(watcher: RecommendedWatcher) -> Self {
        Self { watcher, places: BTreeMap::new(), said: BTreeSet::new() }
    }

    fn watch(&mut self, wanted: BTreeMap<PathBuf, RecursiveMode>) {
        for (place, _) in std::mem::take(&mut self.places) {
            // One that is gone is not watched any more, which is what is wanted.
            let _ = self.watcher.unwatch(&place);
        }
        for (place, mode) in wanted {
            match self.watcher.watch(&place, mode) {
                Ok(()) => {
                    self.said.remove(&place);
                    self.places.insert(place, mode);
                }
                Err(error) if self.said.insert(place.clone()) => tracing::error!(
                    place = %place.display(), %error,
                    "cannot be watched, so changes there are not seen; see whether fs.inotify.max_user_watches is reached"
                ),
                Err(_) => {}
            }
        }
    }
}

/// The directories to watch, and the paths that matter in them.
fn wanted(config: &Config, reloader: &Reloader) -> (BTreeMap<PathBuf, RecursiveMode>, Vec<PathBuf>) {
    let (mut places, mut concerns) = (BTreeMap::new(), Vec::new());
    let mut beside = |path: &Path, places: &mut BTreeMap<PathBuf, RecursiveMode>| {
        if let Some(dir) = path.parent().and_then(nearest) {
            places.entry(dir).or_insert(RecursiveMode::NonRecursive);
        }
        concerns.push(path.to_owned());
    };
    if let Some(file) = reloader.config_file().filter(|_| config.reload.watch) {
        // A file that is a link into another directory changes with that, as where a container is given its configuration.
        beside(file, &mut places);
        if let Ok(real) = file.canonicalize() {
            beside(&real, &mut places);
        }
        if let Some(dir) = file.parent() {
            beside(&dir.join("..data"), &mut places);
        }
    }
    let tools = &config.plugins.tools;
    if let Some(dir) = tools.plugin_dir.as_ref().filter(|_| tools.watch) {
        beside(dir, &mut places);
        if dir.is_dir() {
            places.insert(dir.clone(), RecursiveMode::NonRecursive);
        }
    }
    for spec in reloader.registry().list().iter().map(Plugin::spec).filter(|spec| spec.watch) {
        beside(&spec.program, &mut places);
        if let Some(dir) = &spec.directory {
            beside(dir, &mut places);
            if dir.is_dir() {
                places.insert(dir.clone(), RecursiveMode::Recursive);
            }
        }
    }
    (places, concerns)
}

/// The directory itself, or the nearest above it that is there.
fn nearest(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|dir| dir.is_dir()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_followed_is_worth_a_look() {
        let told = Told {
            something: Notify::new(),
            concerns: Mutex::new(vec!["/p/bin/tool".into(), "/plugins".into()]),
        };
        for (path, concerns) in [
            ("/p/bin/tool", true),
            ("/p/bin", true),
            ("/p/bin/tool.swp", false),
            ("/p/bin/other", false),
            ("/plugins/new", true),
            ("/plugins/dir/deep/file", true),
        ] {
            assert_eq!(told.concern(&[path.into()]), concerns, "{path}");
        }
    }

    #[test]
    fn what_we_read_ourselves_is_no_change() {
        assert!(is_reading(&EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(is_reading(&EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(!is_reading(&EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(!is_reading(&EventKind::Any));
    }

    #[test]
    fn what_is_not_there_is_waited_for_above_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nearest(&dir.path().join("a/b")).unwrap(), dir.path());
        assert_eq!(nearest(dir.path()).unwrap(), dir.path());
    }
}
