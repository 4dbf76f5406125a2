//! What the watchers tell the detectors.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a file changed, as it is now against what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Change {
    Added,
    Changed,
    Removed,
}

/// A file that changed and rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEvent {
    pub(crate) path: PathBuf,
    pub(crate) change: Change,
    /// The work tree that it belongs to.
    pub(crate) repository: Option<PathBuf>,
}

/// A command that ended in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandEvent {
    pub(crate) command: String,
    /// Absent for one of a history file, which holds none.
    pub(crate) exit_code: Option<i32>,
    pub(crate) directory: PathBuf,
    pub(crate) duration_ms: Option<u64>,
}

/// Lines that were added to a file, as its repository's patch has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// Within the work tree.
    pub(crate) path: String,
    /// The number of each line in the new file, from 1, and its text.
    pub(crate) lines: Vec<(usize, String)>,
}

/// What happened in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitEvent {
    /// The work tree.
    pub(crate) repository: PathBuf,
    pub(crate) what: GitChange,
}

/// See [`GitEvent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GitChange {
    /// With the first line of its message, and what it added.
    Commit { id: String, summary: String, added: Vec<Added> },
    /// To a branch of a remote, both in one name: `origin/main`.
    Push { branch: String },
    /// With the paths, and which command is in the middle: merge, cherry-pick or revert.
    MergeConflict { paths: Vec<String>, command: &'static str },
    /// With the paths in conflict.
    RebaseFailed { paths: Vec<String> },
    /// The index changed: what would be added by a commit now, and large files in it with their bytes.
    Stage { added: Vec<Added>, large: Vec<(String, u64)> },
}

/// How far the commits of a work tree were looked into.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenCommit {
    /// The commit that HEAD led to; absent before the first.
    pub(crate) commit: Option<String>,
    /// The length of HEAD's log; 0 without one.
    pub(crate) log_bytes: u64,
}

/// The end of a checker that an operator opted in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckEvent {
    /// The file whose saving started it.
    pub(crate) path: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) repository: Option<PathBuf>,
    pub(crate) command: Vec<String>,
    /// Absent if it was stopped at its timeout.
    pub(crate) exit_code: Option<i32>,
    pub(crate) output: String,
}

/// Anything of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    File(FileEvent),
    Command(CommandEvent),
    Git(GitEvent),
    Check(CheckEvent),
    /// All commits of this work tree up to there were told before.
    CommitsSeen(PathBuf, SeenCommit),
}
