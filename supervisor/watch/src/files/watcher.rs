//! The thread that keeps the index: waits for the kernel's events, looks at directories, tells what changed.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, Watcher as _};

use super::dirty::Dirty;
use super::file_system::remote_name;
use super::index::{Comparison, Index};
use super::kernel_watch::{say_limit, watch};
use super::recent::RecentFiles;
use super::scan::{Listing, Rules, is_repository};
use super::signals::Signals;
use crate::event::{Change, Event, FileEvent};
use crate::notice::Notices;

/// More changes than this in one look, or in a directory that appears, are the work of a program (a checkout,
/// an unpacked archive), and are remembered without looking for findings in them.
const BULK: usize = 100;

/// How often directories that were gone, or could not be watched, are tried again.
const RETRY: Duration = Duration::from_secs(30);

/// What is watched.
#[derive(Debug, Clone)]
pub(crate) struct FileSettings {
    /// Canonical, none inside of another.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) rules: Rules,
    pub(crate) changes: Vec<Change>,
    pub(crate) max_files: usize,
    pub(crate) max_directories: usize,
}

/// Where changes, and the repositories that are found, go.
pub(crate) struct FileSinks {
    pub(crate) events: SyncSender<Event>,
    /// Called with each work tree that is found.
    pub(crate) repository: Box<dyn Fn(PathBuf) + Send>,
}

struct FileWatcher {
    settings: FileSettings,
    sinks: FileSinks,
    notices: Notices,
    watcher: RecommendedWatcher,
    signals: Signals,
    index: Index,
    dirty: Dirty,
    repositories: BTreeSet<PathBuf>,
    /// What changed before this process began to look; the newest [`BULK`] are told.
    recent: RecentFiles,
}

/// Starts the thread; `ready` is called once everything was looked at for the first time, and what changed before is told.
///
/// # Errors
/// When the kernel gives no watcher.
pub(crate) fn start(
    settings: FileSettings,
    sinks: FileSinks,
    notices: Notices,
    ready: impl FnOnce(usize, usize) + Send + 'static,
) -> io::Result<()> {
    let signals = Signals::default();
    let taker = signals.clone();
    // One thread of the library reads the kernel's queue; the handler never waits.
    let watcher = notify::recommended_watcher(move |event| taker.take(event)).map_err(|error| {
        io::Error::other(format!(
            "the kernel gives no watcher ({error}); if this user has too many, raise sysctl fs.inotify.max_user_instances"
        ))
    })?;
    let mut files = FileWatcher {
        settings,
        sinks,
        notices,
        watcher,
        signals,
        index: Index::default(),
        dirty: Dirty::default(),
        repositories: BTreeSet::new(),
        recent: RecentFiles::new(BULK),
    };
    std::thread::Builder::new().name("files".to_owned()).spawn(move || {
        files.learn_all();
        files.tell_recent();
        ready(files.index.directories(), files.index.files());
        files.run();
    })?;
    Ok(())
}

impl FileWatcher {
    fn run(&mut self) {
        let mut retry = Instant::now() + RETRY;
        loop {
            let now = Instant::now();
            let next = self.dirty.next().map_or(retry, |next| next.min(retry));
            let heard = self.signals.wait(next.saturating_duration_since(now));
            let now = Instant::now();
            for directory in &heard.directories {
                if self.index.contains(directory) {
                    self.dirty.mark(directory, now);
                }
            }
            if heard.everything {
                self.dirty.mark_everything(now);
            }
            if heard.limit_reached {
                say_limit(&self.notices);
            }
            if self.dirty.take_everything(now) {
                self.look_at_everything();
            }
            for directory in self.dirty.take_due(now) {
                self.look_at(&directory);
            }
            if now >= retry {
                retry = now + RETRY;
                self.retry();
            }
        }
    }

    /// The first look: nothing that is there is a change, unless an earlier watcher had no time for it.
    fn learn_all(&mut self) {
        for root in self.settings.roots.clone() {
            if let Some(name) = remote_name(&root) {
                let text = format!(
                    "{} is on {name}: changes that other machines make are not seen, and those of this one are",
                    root.display()
                );
                self.notices.once(format!("remote {}", root.display()), text);
            }
            // A directory inside of a work tree opts in for what happens in it.
            if let Some(repository) = root.ancestors().skip(1).find(|path| is_repository(path)) {
                self.found_repository(repository);
            }
            self.learn(&root, &root);
        }
        self.settings.rules.recent_since = None;
    }

    /// Tells of what changed while nobody looked.
    fn tell_recent(&mut self) {
        let all = self.recent.all();
        if all > BULK {
            let text = format!(
                "{all} files changed while no watcher ran, or shortly before: the newest {BULK} of them are looked at"
            );
            self.notices.once("recent", text);
        }
        self.recent.take().into_iter().for_each(|path| self.tell(path, Change::Changed));
    }

    /// Watches and remembers a tree as it is.
    fn learn(&mut self, root: &Path, directory: &Path) {
        let mut found = Vec::new();
        let rules = self.settings.rules.clone();
        let (limits, notices) =
            ((self.settings.max_files, self.settings.max_directories), self.notices.clone());
        let (index, watcher, recent) =
            (std::cell::RefCell::new(&mut self.index), &mut self.watcher, &mut self.recent);
        let entered = std::cell::Cell::new(index.borrow().directories());
        rules.list_all(
            root,
            directory,
            |path| {
                // Watched before it is read: what changes in between is heard.
                entered.set(entered.get() + 1);
                entered.get() <= limits.1
                    && index.borrow().files() <= limits.0
                    && watch(watcher, &notices, path)
            },
            |path, listing| {
                if listing.is_repository {
                    found.push(path.clone());
                }
                recent.add(&path, &listing.recent);
                index.borrow_mut().learn(path, listing.files);
                true
            },
        );
        self.check_limits();
        for repository in found {
            self.found_repository(&repository);
        }
    }

    /// Looks at one directory, and tells what changed and rests.
    fn look_at(&mut self, directory: &Path) {
        let Some(root) = self.root_of(directory) else { return };
        let start = Instant::now();
        // One that was removed and made again has no watch, and the kernel keeps only one for each that is there.
        if self.index.contains(directory) {
            let _ = watch(&mut self.watcher, &self.notices, directory);
        }
        let Some(listing) = self.settings.rules.list(&root, directory) else {
            self.lose(directory);
            return;
        };
        let is_unsettled = self.compare(&root, directory, listing);
        self.dirty.looked(directory, is_unsettled, start.elapsed(), Instant::now());
    }

    /// After an overflow: what happened is told by what differs.
    fn look_at_everything(&mut self) {
        for root in self.settings.roots.clone() {
            let (mut listings, mut files) = (Vec::new(), 0);
            let rules = self.settings.rules.clone();
            let whole = rules.list_all(
                &root,
                &root,
                |_| true,
                |path, listing| {
                    files += listing.files.len();
                    listings.push((path, listing));
                    // What is listed waits in memory; the directories that are left are partial.
                    listings.len() <= self.settings.max_directories && files <= self.settings.max_files
                },
            );
            let seen: HashSet<PathBuf> = listings.iter().map(|(path, _)| path.clone()).collect();
            for (path, listing) in listings {
                if self.index.contains(&path) {
                    let _ = watch(&mut self.watcher, &self.notices, &path);
                }
                if self.index.contains(&path) && self.compare(&root, &path, listing) {
                    self.dirty.looked(&path, true, Duration::ZERO, Instant::now());
                }
            }
            let mut gone = Vec::new();
            if whole {
                let is_gone = |path: &&PathBuf| path.starts_with(&root) && !seen.contains(*path);
                gone.extend(self.index.paths().filter(is_gone).cloned());
            }
            gone.iter().for_each(|path| self.lose(path));
        }
    }

    /// Compares a directory with its listing, adopts and loses directories below. Returns whether it is to be
    /// looked at again.
    fn compare(&mut self, root: &Path, directory: &Path, listing: Listing) -> bool {
        if listing.is_repository {
            self.found_repository(directory);
        } else {
            self.repositories.remove(directory);
        }
        for child in self.index.children(directory) {
            if !listing.is_partial && !listing.directories.contains(&child) {
                self.lose(&child);
            }
        }
        for child in &listing.directories {
            if !self.index.contains(child) {
                self.adopt(root, child);
            }
        }
        if listing.is_partial {
            // What is missing may be there; nothing is told of it.
            return false;
        }
        let Comparison { changes, is_unsettled } = self.index.compare(directory, listing.files);
        self.check_limits();
        if changes.iter().any(|(name, _)| &**name == ".gitignore" || &**name == ".ignore") {
            // What is ignored is different now.
            self.dirty.mark_everything(Instant::now());
        }
        if changes.len() <= BULK {
            for (name, change) in changes {
                self.tell(directory.join(&*name), change);
            }
        }
        is_unsettled
    }

    /// A directory appeared. What is in it is new; of a large one nothing is told.
    fn adopt(&mut self, root: &Path, directory: &Path) {
        let is_full = self.index.files() > self.settings.max_files
            || self.index.directories() >= self.settings.max_directories;
        if is_full {
            return;
        }
        let mut trees = Vec::new();
        let mut files = 0;
        let rules = self.settings.rules.clone();
        let whole = rules.list_all(
            root,
            directory,
            |_| true,
            |path, listing| {
                files += listing.files.len();
                trees.push(path);
                files <= BULK && trees.len() <= BULK
            },
        );
        if !whole {
            self.learn(root, directory);
            return;
        }
        let now = Instant::now();
        for path in trees {
            if self.index.directories() < self.settings.max_directories
                && watch(&mut self.watcher, &self.notices, &path)
            {
                if is_repository(&path) {
                    self.found_repository(&path);
                }
                self.index.add(path.clone());
                self.dirty.mark(&path, now);
            }
        }
        self.check_limits();
    }

    /// A directory is gone, with all below it.
    fn lose(&mut self, directory: &Path) {
        let (directories, files) = self.index.remove(directory);
        for path in &directories {
            // One that is made again is found again.
            self.repositories.remove(path);
            // Fails where the kernel ended the watch itself, since the directory is gone.
            let _ = self.watcher.unwatch(path);
            self.dirty.forget(path);
        }
        if files.len() <= BULK {
            files.into_iter().for_each(|path| self.tell(path, Change::Removed));
        }
    }

    fn tell(&mut self, path: PathBuf, change: Change) {
        if !self.settings.changes.contains(&change) {
            return;
        }
        let repository = path
            .ancestors()
            .skip(1)
            .find(|directory| self.repositories.contains(*directory))
            .map(Path::to_owned);
        // The receiver lives as long as the process.
        let _ = self.sinks.events.send(Event::File(FileEvent { path, change, repository }));
    }

    fn found_repository(&mut self, repository: &Path) {
        if self.repositories.len() < self.settings.max_directories
            && self.repositories.insert(repository.to_owned())
        {
            (self.sinks.repository)(repository.to_owned());
        }
    }

    /// Roots that came back, and directories that could not be watched before.
    fn retry(&mut self) {
        for root in self.settings.roots.clone() {
            if !self.index.contains(&root) && root.is_dir() {
                self.learn(&root, &root);
                self.notices.over(&format!("gone {}", root.display()));
            } else if !self.index.contains(&root) {
                let text = format!("{} is gone; it is watched again once it is back", root.display());
                self.notices.once(format!("gone {}", root.display()), text);
            }
        }
    }

    fn root_of(&self, directory: &Path) -> Option<PathBuf> {
        self.settings.roots.iter().find(|root| directory.starts_with(root)).cloned()
    }

    fn check_limits(&mut self) {
        let (files, directories) = (self.index.files(), self.index.directories());
        let FileSettings { max_files, max_directories, .. } = self.settings;
        if files > max_files {
            let text = format!(
                "more than {max_files} files: further directories are not watched; list fewer directories, ignore some, \
                 or raise shadow.watchers.filesystem.max_files"
            );
            self.notices.limit("files", text);
        }
        if directories >= max_directories {
            let text = format!(
                "{max_directories} directories are watched, further ones are not; list fewer, ignore some, or raise \
                 shadow.watchers.filesystem.max_directories"
            );
            self.notices.limit("directories", text);
        }
    }
}
