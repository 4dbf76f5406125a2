//! File system notifications from the kernel.
//!
//! Editors and installers write a new file and rename it over the old one. So this never watches a file, but
//! the directory it is in; for a directory plugin also everything below it. If a directory does not exist,
//! its nearest existing ancestor is watched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use talon_plugin::Plugin;
use tokio::sync::Notify;

use super::super::reload::{Reloader, blocking};
use crate::config::Config;

/// The watched paths, and a notification that something changed. It cannot overflow here: many events become
/// one notification. If the kernel's queue overflows, the kernel reports that, which is a notification, too.
pub(super) struct Places {
    told: Arc<Told>,
    /// `None` if the kernel provides no watcher. Locked, because setting watches reads directories, which is
    /// done on another thread.
    watcher: Arc<Mutex<Option<Watched>>>,
}

struct Watched {
    watcher: RecommendedWatcher,
    places: BTreeMap<PathBuf, RecursiveMode>,
    /// Paths that could not be watched, which was reported.
    said: BTreeSet<PathBuf>,
}

struct Told {
    something: Notify,
    /// Relevant paths; events about others in the same directories are ignored.
    concerns: Mutex<Vec<PathBuf>>,
}

impl Told {
    fn hear(&self, event: notify::Result<Event>) {
        let concerns = match event {
            // Reading is not a change; every scan does it.
            Ok(event) => !is_reading(&event.kind) && (event.need_rescan() || self.concern(&event.paths)),
            Err(_) => true,
        };
        if concerns {
            self.something.notify_one();
        }
    }

    fn concern(&self, paths: &[PathBuf]) -> bool {
        let concerns = self.concerns.lock().unwrap_or_else(PoisonError::into_inner);
        // Ancestors are relevant, too: a directory that comes back brings its content.
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

    /// Resolves once something has changed since the last call.
    pub(super) async fn happened(&self) {
        self.told.something.notified().await;
    }

    /// Watches what this configuration asks for, and nothing else. All watches are set anew, because a
    /// directory that was moved or recreated is a different one under the same name.
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
            // An error means that it is not watched any more, as intended.
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
        // If the file is a link into another directory, that one is watched, too; container platforms provide
        // configuration that way.
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

/// The directory itself, or its nearest existing ancestor.
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
