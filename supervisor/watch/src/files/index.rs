//! What is remembered of the files: of each directory the names, and a fingerprint each.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::event::Change;

/// Tells one state of a file from another: a hash of its inode, size and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(pub(super) u64);

/// A file as it was seen in its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenFile {
    pub(super) name: Box<OsStr>,
    pub(super) fingerprint: Fingerprint,
}

#[derive(Debug, Default)]
struct Directory {
    /// By name.
    files: Vec<SeenFile>,
    /// Files that were seen in another state than the remembered one, and may still be written: the state
    /// that was seen, or none if it was gone. Empty in most directories, and then without memory.
    unsettled: HashMap<Box<OsStr>, Option<Fingerprint>>,
}

/// What a look at a directory led to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// What changed and rests, by name.
    pub(super) changes: Vec<(Box<OsStr>, Change)>,
    /// Whether something is still changing: the directory has to be looked at once more.
    pub(super) is_unsettled: bool,
}

/// All directories that are watched.
#[derive(Debug, Default)]
pub(super) struct Index {
    directories: BTreeMap<PathBuf, Directory>,
    files: usize,
}

impl Index {
    /// How many directories there are.
    pub(super) fn directories(&self) -> usize {
        self.directories.len()
    }

    /// How many files are remembered.
    pub(super) fn files(&self) -> usize {
        self.files
    }

    pub(super) fn contains(&self, directory: &Path) -> bool {
        self.directories.contains_key(directory)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.keys()
    }

    /// The directories directly below this one.
    pub(super) fn children(&self, directory: &Path) -> Vec<PathBuf> {
        self.below(directory).filter(|path| path.parent() == Some(directory)).cloned().collect()
    }

    fn below<'i>(&'i self, directory: &'i Path) -> impl Iterator<Item = &'i PathBuf> {
        let from = self.directories.range(directory.to_owned()..);
        from.map(|(path, _)| path).take_while(move |path| path.starts_with(directory))
    }

    /// Remembers a directory as it is, without calling anything in it a change.
    pub(super) fn learn(&mut self, directory: PathBuf, mut files: Vec<SeenFile>) {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files.shrink_to_fit();
        self.files += files.len();
        if let Some(known) = self.directories.insert(directory, Directory { files, ..Directory::default() }) {
            self.files -= known.files.len();
        }
    }

    /// Remembers an empty directory: all files that are found in it later are new.
    pub(super) fn add(&mut self, directory: PathBuf) {
        self.learn(directory, Vec::new());
    }

    /// Forgets a directory and all below it. Returns them, and the files that were in them.
    pub(super) fn remove(&mut self, directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let gone: Vec<PathBuf> = self.below(directory).cloned().collect();
        let mut files = Vec::new();
        for path in &gone {
            if let Some(known) = self.directories.remove(path) {
                self.files -= known.files.len();
                files.extend(known.files.iter().map(|file| path.join(&*file.name)));
            }
        }
        (gone, files)
    }

    /// Compares a directory with what is there now. A change counts when it is seen the same way twice: the
    /// first look finds that something changes, the next one that it rests.
    pub(super) fn compare(&mut self, directory: &Path, mut seen: Vec<SeenFile>) -> Comparison {
        let Some(known) = self.directories.get_mut(directory) else { return Comparison::default() };
        seen.sort_by(|a, b| a.name.cmp(&b.name));
        let files_before = known.files.len();
        let mut comparison = Comparison::default();
        let mut unsettled = HashMap::new();
        let mut files = Vec::with_capacity(seen.len());
        let (mut old, mut new) =
            (std::mem::take(&mut known.files).into_iter().peekable(), seen.into_iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(old), Some(new)) => old.name.cmp(&new.name),
            };
            let before = if order.is_le() { old.next() } else { None };
            let now = if order.is_ge() { new.next() } else { None };
            let (state_before, state_now) =
                (before.as_ref().map(|file| file.fingerprint), now.as_ref().map(|file| file.fingerprint));
            let Some(name) = now.as_ref().or(before.as_ref()).map(|file| file.name.clone()) else { continue };
            if state_before == state_now {
                files.extend(now);
                continue;
            }
            // Not the same as at the last look: it may still be written.
            if known.unsettled.get(&name) != Some(&state_now) {
                unsettled.insert(name, state_now);
                files.extend(before);
                continue;
            }
            let change = match (state_before, state_now) {
                (None, _) => Change::Added,
                (Some(_), Some(_)) => Change::Changed,
                (Some(_), None) => Change::Removed,
            };
            files.extend(now);
            comparison.changes.push((name, change));
        }
        // A file that came and went between two looks is in neither.
        comparison.is_unsettled = !unsettled.is_empty();
        files.shrink_to_fit();
        self.files = self.files + files.len() - files_before;
        (known.files, known.unsettled) = (files, unsettled);
        comparison
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
