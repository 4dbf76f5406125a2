//! Which commits are new since a look.

use super::head_log::{COMMITS, HeadLog, Mark, NewCommit, NewCommits};
use super::layout::Layout;
use super::program::Git;
use super::snapshot::Snapshot;

/// The commits that were made between a mark and `now`. Where HEAD has no log, those that lead from the one commit to the other one on
/// the same branch count: without one, a rebase cannot be told from a commit, so that of rewritten history the last one counts alone.
pub(super) fn new_commits(layout: &Layout, before: &Snapshot, mark: &Mark, now: &Snapshot) -> NewCommits {
    let place = mark.seen.as_ref().map_or(0, |seen| seen.log_bytes);
    // What was appended since then is told by the next look.
    let log = HeadLog::read(&layout.git_dir.join("logs/HEAD"), place, now.log_bytes).unwrap_or_default();
    if !log.is_empty() {
        return log.commits_after(mark);
    }
    let seen = mark.seen.as_ref().and_then(|seen| seen.commit.as_ref());
    let has_moved = mark.seen.is_some() && seen != now.commit.as_ref() && before.head == now.head;
    let Some(last) = now.commit.as_ref().filter(|_| has_moved) else { return NewCommits::default() };
    // A commit that was collected is none that the others follow.
    let between = seen.and_then(|seen| Git(&layout.work_tree).commits_between(seen, last, COMMITS + 1).ok());
    let ids = between.filter(|ids| !ids.is_empty()).unwrap_or_else(|| vec![last.clone()]);
    let commits = ids.into_iter().map(|id| NewCommit { id, log_bytes: now.log_bytes });
    NewCommits::latest(commits.collect(), false)
}
