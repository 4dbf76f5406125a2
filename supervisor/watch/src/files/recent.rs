//! What changed before this process began to look: the newest of it, within a bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// When a file changed: seconds since 1970, and nanoseconds.
pub(super) type ChangeTime = (i64, i64);

/// The newest files of those that changed.
#[derive(Debug)]
pub(super) struct RecentFiles {
    /// The oldest one comes out first.
    newest: BinaryHeap<Reverse<(ChangeTime, PathBuf)>>,
    most: usize,
    /// How many changed, those that were left out too.
    all: usize,
}

impl RecentFiles {
    /// Keeps so many.
    pub(super) fn new(most: usize) -> Self {
        Self { newest: BinaryHeap::new(), most, all: 0 }
    }

    /// Adds those of a directory.
    pub(super) fn add(&mut self, directory: &Path, changed: &[(Box<OsStr>, ChangeTime)]) {
        for (name, changed) in changed {
            self.all += 1;
            self.newest.push(Reverse((*changed, directory.join(&**name))));
            if self.newest.len() > self.most {
                self.newest.pop();
            }
        }
    }

    /// How many changed.
    pub(super) fn all(&self) -> usize {
        self.all
    }

    /// The newest ones, the oldest of them first. Nothing is left.
    pub(super) fn take(&mut self) -> Vec<PathBuf> {
        self.all = 0;
        let taken = std::mem::take(&mut self.newest).into_iter();
        let mut newest: Vec<(ChangeTime, PathBuf)> = taken.map(|Reverse(one)| one).collect();
        newest.sort();
        newest.into_iter().map(|(_, path)| path).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    // Promises: SHADOW-42
    #[test]
    fn of_many_files_the_newest_are_kept_and_all_are_counted() {
        let mut recent = RecentFiles::new(3);
        let files = |times: [i64; 3]| {
            times.map(|time| (OsString::from(format!("f{time}")).into_boxed_os_str(), (time, 0_i64)))
        };
        recent.add(Path::new("/a"), &files([5, 1, 9]));
        assert_eq!((recent.all(), recent.newest.len()), (3, 3));
        recent.add(Path::new("/b"), &files([2, 7, 3]));
        assert_eq!((recent.all(), recent.newest.len()), (6, 3));
        assert_eq!(recent.take(), ["/a/f5", "/b/f7", "/a/f9"].map(PathBuf::from));
        assert_eq!((recent.all(), recent.take()), (0, Vec::new()));
    }
}
