//! Repositories: commits, pushes, conflicts, failed rebases, and what is staged.
//!
//! What happened is told by git's own files (HEAD, refs, their logs, `MERGE_HEAD`, `rebase-merge`), which are
//! followed without hooks. What a commit or the index contains is asked of the `git` program, with nothing of
//! the repository's configuration that runs programs: the same git that the person uses knows packs, worktrees,
//! partial clones and hash kinds (docs/decisions/0046).
//!
//! ```text
//! inotify ── repository ── rests ──► Snapshot ── changes(), new_commits() ──► git diff-tree … ──► GitEvent
//! ```

mod commits;
mod finder;
mod head_log;
mod layout;
mod patch;
mod program;
mod snapshot;
mod watcher;

pub(crate) use finder::RepositoryFinder;
pub(crate) use head_log::is_hash;
pub(crate) use watcher::{GitSettings, is_in_progress, start};
