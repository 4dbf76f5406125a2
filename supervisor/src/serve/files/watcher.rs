//! File system notifications from the kernel.
//!
//! Editors and installers write a new file and rename it over the old one. So this never watches a file, but
//! the directory it is in; for a directory plugin also everything below it. If a directory does not exist,
//! its nearest existing ancestor is watched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use talon_plugin::Plugin;
use tokio::sync::Notify;

use crate::blocking::blocking;
use crate::config::Config;
use crate::reload::Reloader;

/// The watched paths, and a notification that something changed. It cannot overflow here: many events become
/// one notification. If the kernel's queue overflows, the kernel reports that, which is a notification, too.
pub(super) struct FileWatcher {
    notifier: Arc<ChangeNotifier>,
    /// `None` if the kernel provides no watcher. Locked, because setting watches reads directories, which is
    /// done on another thread.
    watcher: Arc<Mutex<Option<WatchedPaths>>>,
}

struct WatchedPaths {
    watcher: RecommendedWatcher,
    watched: BTreeMap<PathBuf, RecursiveMode>,
    /// Paths that could not be watched, which was reported.
    reported: BTreeSet<PathBuf>,
}

struct ChangeNotifier {
    changed: Notify,
    /// Relevant paths; events about others in the same directories are ignored.
    relevant: Mutex<Vec<PathBuf>>,
}

impl ChangeNotifier {
    fn handle_event(&self, event: notify::Result<Event>) {
        let concerns = match event {
            // Reading is not a change; every scan does it.
            Ok(event) => !is_access(&event.kind) && (event.need_rescan() || self.is_relevant(&event.paths)),
            Err(_) => true,
        };
        if concerns {
            self.changed.notify_one();
        }
    }

    fn is_relevant(&self, paths: &[PathBuf]) -> bool {
        let concerns = self.relevant.lock();
        // Ancestors are relevant, too: a directory that comes back brings its content.
        paths
            .iter()
            .any(|path| concerns.iter().any(|about| path.starts_with(about) || about.starts_with(path)))
    }
}

fn is_access(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Access(kind) if *kind != AccessKind::Close(AccessMode::Write))
}

impl FileWatcher {
    pub(super) fn new() -> Self {
        let notifier = Arc::new(ChangeNotifier { changed: Notify::new(), relevant: Mutex::default() });
        Self { notifier, watcher: Arc::default() }
    }

    /// Resolves once something has changed since the last call.
    pub(super) async fn changed(&self) {
        self.notifier.changed.notified().await;
    }

    /// Watches what this configuration asks for, and nothing else. All watches are set anew, because a
    /// directory that was moved or recreated is a different one under the same name.
    pub(super) async fn watch(&self, config: Arc<Config>, reloader: Reloader) {
        let (told, watcher) = (Arc::clone(&self.notifier), Arc::clone(&self.watcher));
        blocking(move || {
            let (wanted, concerns) = desired_watches(&config, &reloader);
            *told.relevant.lock() = concerns;
            let mut watcher = watcher.lock();
            if wanted.is_empty() {
                *watcher = None;
                return;
            }
            if watcher.is_none() {
                let told = Arc::clone(&told);
                match notify::recommended_watcher(move |event| told.handle_event(event)) {
                    Ok(made) => *watcher = Some(WatchedPaths::new(made)),
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

impl WatchedPaths {
    fn new(watcher: RecommendedWatcher) -> Self {
        Self { watcher, watched: BTreeMap::new(), reported: BTreeSet::new() }
    }

    fn watch(&mut self, wanted: BTreeMap<PathBuf, RecursiveMode>) {
        for (place, _) in std::mem::take(&mut self.watched) {
            // An error means that it is not watched any more, as intended.
            let _ = self.watcher.unwatch(&place);
        }
        for (place, mode) in wanted {
            match self.watcher.watch(&place, mode) {
                Ok(()) => {
                    self.reported.remove(&place);
                    self.watched.insert(place, mode);
                }
                Err(error) if self.reported.insert(place.clone()) => tracing::error!(
                    place = %place.display(), %error,
                    "cannot be watched, so changes there are not seen; see whether fs.inotify.max_user_watches is reached"
                ),
                Err(_) => {}
            }
        }
    }
}

/// The directories to watch, and the paths that matter in them.
fn desired_watches(config: &Config, reloader: &Reloader) -> (BTreeMap<PathBuf, RecursiveMode>, Vec<PathBuf>) {
    let (mut places, mut concerns) = (BTreeMap::new(), Vec::new());
    let mut beside = |path: &Path, places: &mut BTreeMap<PathBuf, RecursiveMode>| {
        if let Some(dir) = path.parent().and_then(nearest_existing) {
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
    if let Some(lua) = config.plugins.lua.as_ref().filter(|lua| lua.watch) {
        beside(&lua.scripts_dir, &mut places);
        if lua.scripts_dir.is_dir() {
            places.insert(lua.scripts_dir.clone(), RecursiveMode::NonRecursive);
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
fn nearest_existing(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find(|dir| dir.is_dir()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_followed_is_worth_a_look() {
        let told = ChangeNotifier {
            changed: Notify::new(),
            relevant: Mutex::new(vec!["/p/bin/tool".into(), "/plugins".into()]),
        };
        for (path, concerns) in [
            ("/p/bin/tool", true),
            ("/p/bin", true),
            ("/p/bin/tool.swp", false),
            ("/p/bin/other", false),
            ("/plugins/new", true),
            ("/plugins/dir/deep/file", true),
        ] {
            assert_eq!(told.is_relevant(&[path.into()]), concerns, "{path}");
        }
    }

    #[test]
    fn what_we_read_ourselves_is_no_change() {
        assert!(is_access(&EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(is_access(&EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(!is_access(&EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(!is_access(&EventKind::Any));
    }

    #[test]
    fn what_is_not_there_is_waited_for_above_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(nearest_existing(&dir.path().join("a/b")).unwrap(), dir.path());
        assert_eq!(nearest_existing(dir.path()).unwrap(), dir.path());
    }
}
