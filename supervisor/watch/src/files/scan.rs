//! Lists directories: their files with a fingerprint each, by the rules of what is ignored.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::hash::BuildHasher as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use foldhash::fast::FixedState;
use ignore::{Walk, WalkBuilder};

use super::editor_files::is_editors;
use super::index::{Fingerprint, SeenFile};
use super::recent::ChangeTime;
use crate::limits::PATH_BYTES;

/// What is not looked at, beside `.gitignore` files.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// Globs of the configuration; they are known to be well-formed.
    pub(crate) ignore: Vec<String>,
    /// How many files of one directory are listed.
    pub(crate) max_files: usize,
    /// Files that changed since then, in seconds since 1970, are listed as recent; absent: none.
    pub(crate) recent_since: Option<i64>,
}

/// A directory as it is.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: Vec<SeenFile>,
    /// The names of those that changed lately, by the rules; and when.
    pub(super) recent: Vec<(Box<OsStr>, ChangeTime)>,
    /// Those that are watched.
    pub(super) directories: BTreeSet<PathBuf>,
    /// Whether it is the root of a git work tree: it contains `.git`.
    pub(super) is_repository: bool,
    /// It has more files than are listed, so that nothing can be told by what is missing.
    pub(super) is_partial: bool,
}

impl Rules {
    /// Lists one directory below `root`. None if it cannot be read, or is gone.
    pub(super) fn list(&self, root: &Path, directory: &Path) -> Option<Listing> {
        let mut listing = Listing { is_repository: is_repository(directory), ..Listing::default() };
        let mut is_readable = directory.is_dir();
        for entry in self.walk(root, directory, Some(1)) {
            // Other errors are of single entries, which are gone, or cannot be read.
            let Ok(entry) = entry else { continue };
            if entry.depth() == 0 {
                is_readable = true;
                continue;
            }
            listing.take(&entry, self);
        }
        is_readable.then_some(listing)
    }

    /// Lists `directory`, which is below `root`, and everything below it. `enter` is called with each directory
    /// before it is read, `leave` with each one and its listing; both say whether to go on. Returns whether all
    /// was listed; if not, the directories that were begun are left nevertheless, as partial ones.
    pub(super) fn list_all(
        &self,
        root: &Path,
        directory: &Path,
        mut enter: impl FnMut(&Path) -> bool,
        mut leave: impl FnMut(PathBuf, Listing) -> bool,
    ) -> bool {
        let mut open: Vec<(PathBuf, Listing)> = Vec::new();
        let mut is_whole = true;
        'walk: for entry in self.walk(root, directory, None) {
            let Ok(entry) = entry else { continue };
            while open.len() > entry.depth() {
                let Some((path, listing)) = open.pop() else { break };
                if !leave(path, listing) {
                    is_whole = false;
                    break 'walk;
                }
            }
            if let Some((_, parent)) = open.last_mut() {
                parent.take(&entry, self);
            }
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                if !enter(entry.path()) {
                    is_whole = false;
                    break;
                }
                let is_repository = is_repository(entry.path());
                open.push((entry.into_path(), Listing { is_repository, ..Listing::default() }));
            }
        }
        while let Some((path, mut listing)) = open.pop() {
            listing.is_partial |= !is_whole;
            is_whole &= leave(path, listing);
        }
        is_whole
    }

    /// Links are not followed, so that a loop is none; other file systems are not entered.
    fn walk(&self, root: &Path, directory: &Path, depth: Option<usize>) -> Walk {
        let mut builder = WalkBuilder::new(directory);
        builder.max_depth(depth).hidden(false).require_git(false).follow_links(false).same_file_system(true);
        // The configuration was checked, so that this does not fail; without its globs more is looked at.
        if let Ok(overrides) = crate::config::overrides(root, &self.ignore) {
            builder.overrides(overrides);
        }
        builder.filter_entry(|entry| entry.file_name() != ".git" && is_short(entry.path()));
        builder.build()
    }
}

impl Listing {
    fn take(&mut self, entry: &ignore::DirEntry, rules: &Rules) {
        let Some(kind) = entry.file_type() else { return };
        if kind.is_dir() {
            self.directories.insert(entry.path().to_owned());
        } else if kind.is_file() && !is_editors(&entry.file_name().to_string_lossy()) {
            if self.files.len() >= rules.max_files {
                self.is_partial = true;
                return;
            }
            let Ok(metadata) = entry.metadata() else { return };
            // A file that was moved here has an old time of its own.
            if rules.recent_since.is_some_and(|since| metadata.ctime() >= since) {
                self.recent.push((entry.file_name().into(), (metadata.ctime(), metadata.ctime_nsec())));
            }
            self.files.push(SeenFile { name: entry.file_name().into(), fingerprint: fingerprint(&metadata) });
        }
    }
}

/// The times are compared, and never reckoned with: a clock that jumps changes nothing.
fn fingerprint(metadata: &std::fs::Metadata) -> Fingerprint {
    let state = (
        metadata.ino(),
        metadata.size(),
        (metadata.mtime(), metadata.mtime_nsec()),
        (metadata.ctime(), metadata.ctime_nsec()),
    );
    Fingerprint(FixedState::default().hash_one(state))
}

/// A directory `.git`, or a file of this name, which work trees and submodules have.
pub(super) fn is_repository(directory: &Path) -> bool {
    directory.join(".git").symlink_metadata().is_ok()
}

/// The work tree that a directory below one of `roots` is in; none outside of them, or of any.
pub(crate) fn repository_of(directory: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    if !roots.iter().any(|root| directory.starts_with(root)) {
        return None;
    }
    directory.ancestors().find(|path| is_repository(path)).map(Path::to_owned)
}

/// What lies deeper cannot be sent, and is not watched.
fn is_short(path: &Path) -> bool {
    path.as_os_str().len() <= PATH_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listing: &Listing) -> Vec<String> {
        let mut names: Vec<String> =
            listing.files.iter().map(|file| file.name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    // Promises: SHADOW-69
    #[test]
    fn ignored_files_links_and_fifos_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for path in ["src", "target/debug", "logs", ".git", "src/deep"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        std::fs::write(at(".gitignore"), "target/\n*.o\n").unwrap();
        for name in
            ["a.rs", "a.o", ".env", "b.log", ".a.rs.swp", "src/c.rs", "target/debug/x.rs", "src/deep/d.o"]
        {
            std::fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink(dir.path(), at("src/loop")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let rules =
            Rules { ignore: vec!["*.log".into(), "/logs/".into()], max_files: 100, recent_since: Some(0) };
        let listing = rules.list(dir.path(), dir.path()).unwrap();
        assert_eq!(names(&listing), [".env", ".gitignore", "a.rs"]);
        assert_eq!(listing.directories, BTreeSet::from([at("src")]));
        assert!(listing.is_repository);
        assert_eq!(listing.recent.len(), 3);
        let tomorrow =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 86_400;
        let later = Rules { recent_since: i64::try_from(tomorrow).ok(), ..rules.clone() };
        assert!(later.list(dir.path(), dir.path()).unwrap().recent.is_empty());
        let below = rules.list(dir.path(), &at("src/deep")).unwrap();
        assert!(names(&below).is_empty() && !below.is_repository);
        let mut all = Vec::new();
        let whole = rules.list_all(
            dir.path(),
            dir.path(),
            |_| true,
            |path, listing| {
                all.push((path, names(&listing)));
                true
            },
        );
        assert!(whole);
        all.sort();
        let expected = [
            (dir.path().to_owned(), vec![".env".to_owned(), ".gitignore".into(), "a.rs".into()]),
            (at("src"), vec!["c.rs".into()]),
            (at("src/deep"), vec![]),
        ];
        assert_eq!(all, expected);
        assert!(rules.list(dir.path(), &at("missing")).is_none());
    }
}
