//! How far the commits of each repository were looked into, in a file: of those that were made while no watcher ran, all are
//! looked into after the next start.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::event::SeenCommit;
use crate::git::is_hash;
use crate::notice::Notices;
use crate::runtime_dir::replace_own_file;

/// The least time between two writes. A watcher that is killed in between looks into the same commits again, which the
/// agent knows.
const APART: Duration = Duration::from_secs(10);

/// How many repositories are remembered: four times as many as are followed, for disks that are not always there.
const REPOSITORIES: usize = 256;

/// The largest file that is read: each entry has one path and one hash.
const FILE_BYTES: u64 = 2 << 20;

const FILE: &str = "commits";

/// The file.
#[derive(Debug)]
pub(crate) struct SeenCommits {
    file: PathBuf,
    /// By their work trees. Of one whose path is no text nothing is kept.
    seen: BTreeMap<String, SeenCommit>,
    written: Option<Instant>,
    is_due: bool,
}

impl SeenCommits {
    /// In the directory of what outlives the watcher. A file that cannot be read counts as none.
    pub(crate) fn open(directory: &Path) -> Self {
        let file = directory.join(FILE);
        let mut seen: BTreeMap<String, SeenCommit> = read(&file).unwrap_or_default();
        // They are arguments of git's.
        seen.retain(|_, seen| seen.commit.as_deref().is_none_or(is_hash));
        Self { file, seen, written: None, is_due: false }
    }

    pub(crate) fn all(&self) -> HashMap<PathBuf, SeenCommit> {
        self.seen.iter().map(|(work_tree, seen)| (PathBuf::from(work_tree), seen.clone())).collect()
    }

    /// All commits of a work tree up to this one are told. That there is no room for a further work tree is said once.
    pub(crate) fn saw(&mut self, work_tree: &Path, seen: SeenCommit, notices: &Notices) {
        let Some(work_tree) = work_tree.to_str() else { return };
        if self.seen.get(work_tree) == Some(&seen) {
            return;
        }
        if self.seen.len() >= REPOSITORIES && !self.seen.contains_key(work_tree) {
            self.seen.retain(|known, _| Path::new(known).join(".git").exists());
            if self.seen.len() >= REPOSITORIES {
                let text = format!(
                    "how far commits were looked into is remembered of {REPOSITORIES} repositories, and of no further ones: after the next start \
                     their commits are found by their time alone; to begin anew, remove {} while no watcher runs",
                    self.file.display()
                );
                notices.once("seen commits", text);
                return;
            }
        }
        self.seen.insert(work_tree.to_owned(), seen);
        self.is_due = true;
    }

    /// Writes what is new, unless it was written just now. Whoever cannot write it looks into the same commits again.
    pub(crate) fn write_if_due(&mut self, now: Instant) {
        let is_apart = self.written.is_none_or(|at| now.saturating_duration_since(at) >= APART);
        if self.is_due && is_apart {
            (self.written, self.is_due) = (Some(now), false);
            let json = serde_json::to_vec(&self.seen).unwrap_or_default();
            let _ = replace_own_file(&self.file, &json);
        }
    }
}

fn read(file: &Path) -> Option<BTreeMap<String, SeenCommit>> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn at(letter: &str) -> SeenCommit {
        SeenCommit { commit: Some(letter.repeat(40)), log_bytes: 7 }
    }

    // Promises: SHADOW-96
    #[test]
    fn what_was_seen_is_written_for_its_owner_alone_and_seldom() {
        let dir = tempfile::tempdir().unwrap();
        let read = || SeenCommits::open(dir.path()).all();
        let (mut seen, start) = (SeenCommits::open(dir.path()), Instant::now());
        seen.write_if_due(start);
        assert!(!dir.path().join(FILE).exists(), "there is nothing to write");
        seen.saw(Path::new("/code"), at("a"), &Notices::default());
        seen.write_if_due(start);
        assert_eq!(read(), HashMap::from([("/code".into(), at("a"))]));
        assert_eq!(dir.path().join(FILE).metadata().unwrap().mode() & 0o777, 0o600);
        seen.saw(Path::new("/code"), at("b"), &Notices::default());
        seen.write_if_due(start + APART / 2);
        assert_eq!(read()[Path::new("/code")], at("a"));
        seen.write_if_due(start + APART);
        assert_eq!(read()[Path::new("/code")], at("b"));
    }

    // Promises: SHADOW-96
    #[test]
    fn a_file_that_says_nothing_usable_counts_as_none_and_it_stays_bounded() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "nonsense", r#"{"/code": {"commit": "--output=/x", "log_bytes": 1}}"#] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            assert!(SeenCommits::open(dir.path()).all().is_empty(), "{text}");
        }
        let mut seen = SeenCommits::open(dir.path());
        let notices = Notices::default();
        for number in 0..=REPOSITORIES {
            seen.saw(Path::new(&format!("/nowhere/{number}")), at("a"), &notices);
        }
        assert_eq!(seen.all().len(), 1, "work trees that are gone make room");
        for number in 0..=REPOSITORIES {
            let work_tree = dir.path().join(number.to_string());
            std::fs::create_dir_all(work_tree.join(".git")).unwrap();
            seen.saw(&work_tree, at("a"), &notices);
        }
        assert_eq!(seen.all().len(), REPOSITORIES);
        assert!(!notices.once("seen commits", "again"), "it was said");
    }
}
