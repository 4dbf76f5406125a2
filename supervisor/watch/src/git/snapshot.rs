//! The state of a repository by git's files, and what happened between two states.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::head_log::is_hash;
use super::layout::{Layout, read_small};
use crate::event::SeenCommit;
use crate::limits::REMOTE_REFS;

/// The largest `packed-refs` that is read: some 100,000 refs.
const PACKED_REFS_BYTES: u64 = 8 << 20;

/// How much of the end of a ref's log is read: a line has two hashes, a name, and a message's first line.
const LOG_TAIL_BYTES: u64 = 4096;

/// How deep names of refs are followed: `refs/remotes/origin/feature/a/b`.
const REF_DEPTH: usize = 8;

/// What is in the middle of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Progress {
    Merge,
    CherryPick,
    Revert,
    Rebase,
}

/// A repository at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// What HEAD says: `ref: refs/heads/main`, or a hash.
    pub(super) head: String,
    /// The commit that HEAD leads to; none before the first.
    pub(super) commit: Option<String>,
    /// The length of HEAD's log; 0 without one.
    pub(super) log_bytes: u64,
    /// The branches of remotes, with their commits.
    pub(super) remotes: BTreeMap<String, String>,
    pub(super) progress: Option<Progress>,
    /// Changes with the index: its size and times.
    pub(super) index: Option<(u64, i64, i64, u64)>,
    /// The format of refs that is no files; such a repository cannot be followed.
    pub(super) is_reftable: bool,
}

/// Something that happened beside commits, which `commits` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SnapshotChange {
    Push {
        branch: String,
    },
    /// The index changed.
    Stage,
}

impl Snapshot {
    pub(super) fn of(layout: &Layout) -> Self {
        let at = |name: &str| layout.git_dir.join(name);
        let head = read_small(&at("HEAD")).unwrap_or_default().trim_end().to_owned();
        let is_reftable = head == "ref: refs/heads/.invalid" || layout.common_dir.join("reftable").is_dir();
        let packed = packed_refs(&layout.common_dir);
        let commit = match head.strip_prefix("ref: ") {
            Some(name) => read_ref(layout, name.trim(), &packed),
            None => Some(head.clone()).filter(|text| is_hash(text)),
        };
        let mut remotes: BTreeMap<String, String> = packed
            .iter()
            .filter_map(|(name, id)| Some((remote_branch(name)?.to_owned(), id.clone())))
            .collect();
        let mut budget = REMOTE_REFS;
        loose_refs(&layout.common_dir.join("refs/remotes"), "", REF_DEPTH, &mut budget, &mut remotes);
        while remotes.len() > REMOTE_REFS {
            remotes.pop_last();
        }
        let progress = progress(layout);
        let index = at("index").symlink_metadata().ok();
        let index = index.map(|index| (index.len(), index.mtime(), index.mtime_nsec(), index.ino()));
        let log = at("logs/HEAD").symlink_metadata().ok().filter(fs::Metadata::is_file);
        let log_bytes = log.map_or(0, |log| log.len());
        Self { head, commit, log_bytes, remotes, progress, index, is_reftable }
    }

    /// How far commits are looked into once all up to this state are told.
    pub(super) fn seen(&self) -> SeenCommit {
        SeenCommit { commit: self.commit.clone(), log_bytes: self.log_bytes }
    }

    /// The state as it may have been at a moment, in seconds since 1970: what changed since then differs from now. Pushes
    /// do not.
    pub(super) fn at_moment(&self, layout: &Layout, since: i64) -> Self {
        let is_recent =
            |name: &str| layout.git_dir.join(name).symlink_metadata().is_ok_and(|file| file.ctime() >= since);
        let stops = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"];
        Self {
            index: self.index.filter(|_| !is_recent("index")),
            progress: self.progress.filter(|_| !stops.into_iter().any(is_recent)),
            ..self.clone()
        }
    }

    /// What happened from `before` to this state. A ref of a remote counts as pushed if its own log says so:
    /// fetching moves it as well.
    pub(super) fn changes(&self, before: &Self, was_pushed: impl Fn(&str) -> bool) -> Vec<SnapshotChange> {
        let mut changes = Vec::new();
        for (branch, commit) in &self.remotes {
            if before.remotes.get(branch) != Some(commit) && was_pushed(branch) {
                changes.push(SnapshotChange::Push { branch: branch.clone() });
            }
        }
        if self.index != before.index && self.index.is_some() {
            changes.push(SnapshotChange::Stage);
        }
        changes
    }
}

/// What a repository is in the middle of.
pub(super) fn progress(layout: &Layout) -> Option<Progress> {
    let at = |name: &str| layout.git_dir.join(name);
    if at("rebase-merge").is_dir() || at("rebase-apply").is_dir() {
        return Some(Progress::Rebase);
    }
    let files = [
        ("MERGE_HEAD", Progress::Merge),
        ("CHERRY_PICK_HEAD", Progress::CherryPick),
        ("REVERT_HEAD", Progress::Revert),
    ];
    files.into_iter().find(|(name, _)| at(name).is_file()).map(|(_, progress)| progress)
}

/// Whether the last entry of a remote branch's log is a push.
pub(super) fn was_pushed(layout: &Layout, branch: &str) -> bool {
    let log = layout.common_dir.join("logs/refs/remotes").join(branch);
    last_message(&log).is_some_and(|message| message.starts_with("update by push"))
}

fn read_ref(layout: &Layout, name: &str, packed: &BTreeMap<String, String>) -> Option<String> {
    // A name from a file of the repository: it must not lead out of it.
    let is_plain = name.starts_with("refs/") && !name.split('/').any(|part| part.is_empty() || part == "..");
    if !is_plain {
        return None;
    }
    let loose = [&layout.git_dir, &layout.common_dir].into_iter().find_map(|dir| read_small(&dir.join(name)));
    let loose = loose.map(|text| text.trim_end().to_owned()).filter(|text| is_hash(text));
    loose.or_else(|| packed.get(name).cloned())
}

fn remote_branch(name: &str) -> Option<&str> {
    name.strip_prefix("refs/remotes/").filter(|branch| !branch.ends_with("/HEAD"))
}

/// `packed-refs`: lines of a hash and a name; `#` and `^` begin other ones.
fn packed_refs(common_dir: &Path) -> BTreeMap<String, String> {
    let path = common_dir.join("packed-refs");
    let is_bounded =
        path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() <= PACKED_REFS_BYTES);
    let bytes = if is_bounded { fs::read(&path).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(id, _)| is_hash(id)).map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
}

/// Adds the loose refs below a directory.
fn loose_refs(
    dir: &Path,
    prefix: &str,
    depth: usize,
    budget: &mut usize,
    into: &mut BTreeMap<String, String>,
) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if *budget == 0 {
            return;
        }
        *budget -= 1;
        let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if kind.is_dir() && depth > 0 {
            loose_refs(&entry.path(), &name, depth - 1, budget, into);
        } else if kind.is_file() && !name.ends_with("/HEAD") && !name.ends_with(".lock") {
            let id =
                read_small(&entry.path()).map(|text| text.trim_end().to_owned()).filter(|text| is_hash(text));
            id.map(|id| into.insert(name, id));
        }
    }
}

/// The message of the last line of a ref's log: what stands behind the tab.
fn last_message(path: &Path) -> Option<String> {
    path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, message) = text.lines().next_back()?.split_once('\t')?;
    Some(message.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: SHADOW-72
    #[test]
    fn a_push_is_told_from_a_fetch() {
        let before = Snapshot { commit: Some("a".repeat(40)), ..Snapshot::default() };
        let mut after = before.clone();
        after.remotes =
            BTreeMap::from([("origin/main".into(), "b".repeat(40)), ("origin/x".into(), "c".repeat(40))]);
        let changes = after.changes(&before, |branch| branch == "origin/main");
        assert_eq!(changes, [SnapshotChange::Push { branch: "origin/main".into() }]);
    }

    proptest! {
        /// A hostile repository's files lead nowhere else, and break nothing.
        // Promises: SHADOW-73
        #[test]
        fn any_files_are_taken(head in "\\PC{0,80}", packed in "\\PC{0,200}", log in "\\PC{0,200}") {
            let dir = tempfile::tempdir().unwrap();
            let git = dir.path().join(".git");
            fs::create_dir_all(git.join("logs")).unwrap();
            fs::write(git.join("HEAD"), &head).unwrap();
            fs::write(git.join("packed-refs"), &packed).unwrap();
            fs::write(git.join("logs/HEAD"), &log).unwrap();
            fs::write(dir.path().join("outside"), "a".repeat(40)).unwrap();
            let layout = Layout::of(dir.path()).unwrap();
            let snapshot = Snapshot::of(&layout);
            prop_assert!(snapshot.commit.is_none_or(|commit| is_hash(&commit)));
            fs::write(git.join("HEAD"), "ref: refs/../../outside").unwrap();
            prop_assert_eq!(Snapshot::of(&layout).commit, None);
        }
    }
}
