//! The thread that follows repositories.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::commits::new_commits;
use super::finder::{FinderMessage, LookedAt, RepositoryFinder};
use super::head_log::{COMMITS, Mark, NewCommits};
use super::layout::Layout;
use super::program::{Git, GitError};
use super::snapshot::{Progress, Snapshot, SnapshotChange, progress, was_pushed};
use crate::event::{Event, GitChange, GitEvent, SeenCommit};
use crate::files::Signals;
use crate::limits::{REPOSITORIES, SETTLE};
use crate::notice::Notices;

/// How long a lock of git may keep us from looking. 10 s: a crashed git leaves its lock for ever.
const LOCKED: Duration = Duration::from_secs(10);

/// How many directories of refs are watched in a repository: one a remote, and one for each prefix of branches.
const REF_DIRECTORIES: usize = 128;

/// How long nothing may happen until it is looked whether somebody is still there.
const REST: Duration = Duration::from_secs(3600);

/// What is told of repositories.
#[derive(Debug, Clone)]
pub(crate) struct GitSettings {
    /// Whether the index is looked into.
    pub(crate) stage: bool,
    /// Whether commits are looked into.
    pub(crate) commit: bool,
    /// How long a look tells of commits, one at least.
    pub(crate) commits_time: Duration,
    /// What happened since then in the repositories of the first look is told, in seconds since 1970; absent: nothing.
    pub(crate) recent_since: Option<i64>,
    /// How far the commits of work trees were looked into by an earlier watcher.
    pub(crate) seen: HashMap<PathBuf, SeenCommit>,
}

struct Repository {
    layout: Layout,
    before: Snapshot,
    /// From where on commits are new.
    mark: Mark,
    /// The conflict that was told last: what was in progress, and on top of which commit.
    conflict_told: Option<Stop>,
    /// When to look at it, and since when that waits.
    due: Option<(Instant, Instant)>,
}

/// Where something stopped: a rebase stops again on top of another commit.
type Stop = (Progress, Option<String>);

/// Whether a merge, a rebase or the like is in progress in this work tree.
pub(crate) fn is_in_progress(work_tree: &Path) -> bool {
    Layout::of(work_tree).is_some_and(|layout| progress(&layout).is_some())
}

struct GitWatcher {
    settings: GitSettings,
    events: SyncSender<Event>,
    notices: Notices,
    watcher: RecommendedWatcher,
    signals: Signals,
    repositories: HashMap<PathBuf, Repository>,
    /// Which work tree a watched directory belongs to; worktrees share some.
    owners: HashMap<PathBuf, Vec<PathBuf>>,
}

/// Starts the thread, which follows the work trees that arrive.
///
/// # Errors
/// When the kernel gives no watcher.
pub(crate) fn start(
    settings: GitSettings,
    events: SyncSender<Event>,
    notices: Notices,
) -> io::Result<RepositoryFinder> {
    let signals = Signals::default();
    let (sender, found) = mpsc::channel();
    let finder = RepositoryFinder::new(sender, signals.clone());
    let taker = signals.clone();
    let watcher = notify::recommended_watcher(move |event| taker.take(event)).map_err(io::Error::other)?;
    let mut git = GitWatcher {
        settings,
        events,
        notices,
        watcher,
        signals,
        repositories: HashMap::new(),
        owners: HashMap::new(),
    };
    std::thread::Builder::new().name("git".to_owned()).spawn(move || git.run(&found))?;
    Ok(finder)
}

impl GitWatcher {
    fn run(&mut self, found: &Receiver<FinderMessage>) {
        let mut first_look: Option<LookedAt> = None;
        loop {
            loop {
                match found.try_recv() {
                    Ok(FinderMessage::Repository(work_tree)) => self.follow(&work_tree),
                    Ok(FinderMessage::All(followed, looked_at)) => {
                        self.settings.recent_since = None;
                        followed(self.repositories.len());
                        first_look = Some(looked_at);
                    }
                    Err(TryRecvError::Empty) => break,
                    // Nobody finds any more: the process ends.
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            let now = Instant::now();
            let next =
                self.repositories.values().filter_map(|repository| repository.due).map(|(due, _)| due).min();
            if next.is_none()
                && let Some(looked_at) = first_look.take()
            {
                looked_at();
            }
            let limit = next.map_or(REST, |next| next.saturating_duration_since(now));
            let heard = self.signals.wait(limit);
            let now = Instant::now();
            for (work_tree, repository) in &mut self.repositories {
                let is_meant = heard.everything
                    || heard.directories.iter().any(|directory| {
                        self.owners.get(directory).is_some_and(|owners| owners.contains(work_tree))
                    });
                if is_meant {
                    let since = repository.due.map_or(now, |(_, since)| since);
                    // Each step of git puts it off, but not for ever.
                    let due = (now + SETTLE).min(since + LOCKED);
                    repository.due = Some((due, since));
                }
            }
            let due: Vec<PathBuf> = self
                .repositories
                .iter()
                .filter(|(_, repository)| repository.due.is_some_and(|(due, _)| due <= now))
                .map(|(work_tree, _)| work_tree.clone())
                .collect();
            for work_tree in due {
                self.look_at(&work_tree, now);
            }
        }
    }

    fn follow(&mut self, work_tree: &Path) {
        if self.repositories.contains_key(work_tree) {
            return;
        }
        if self.repositories.len() >= REPOSITORIES {
            let text = format!(
                "{REPOSITORIES} repositories are followed, further ones are not; watch fewer directories"
            );
            self.notices.limit("repositories", text);
            return;
        }
        let Some(layout) = Layout::of(work_tree) else {
            self.say_once(work_tree, "it is no repository as git makes them");
            return;
        };
        self.watch(&layout);
        let now = Snapshot::of(&layout);
        if now.is_reftable {
            self.say_once(work_tree, "its refs are in the format reftable, which is not followed");
            return;
        }
        // What was there before is known to its person, unless an earlier watcher had no time for it.
        let since = self.settings.recent_since;
        let before = since.map_or_else(|| now.clone(), |since| now.at_moment(&layout, since));
        let conflict_told = stop_of(&before);
        // Once: when it is followed again, an old place would have its commits told again.
        let seen = self.settings.seen.remove(work_tree);
        let is_known = seen.as_ref().map_or(since.is_none(), |seen| *seen == now.seen());
        let mark = if is_known { Mark { seen: Some(now.seen()), since } } else { Mark { seen, since } };
        let due = (before != now || !is_known).then(|| (Instant::now(), Instant::now()));
        if due.is_none() {
            self.send_seen(work_tree, now.seen());
        }
        let repository = Repository { layout, before, mark, conflict_told, due };
        self.repositories.insert(work_tree.to_owned(), repository);
    }

    /// Watches what git writes to: its own directory, the shared one, and those of remotes' branches.
    fn watch(&mut self, layout: &Layout) {
        let mut places =
            vec![layout.git_dir.clone(), layout.common_dir.clone(), layout.common_dir.join("refs")];
        let mut open = vec![layout.common_dir.join("refs/remotes")];
        while let Some(directory) = open.pop() {
            if places.len() >= REF_DIRECTORIES {
                break;
            }
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            open.extend(below.map(|entry| entry.path()));
            places.push(directory);
        }
        for place in places {
            // Again at each look: one that was removed and made again has no watch any more.
            match self.watcher.watch(&place, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    let owners = self.owners.entry(place).or_default();
                    if !owners.contains(&layout.work_tree) {
                        owners.push(layout.work_tree.clone());
                    }
                }
                Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => {
                    let text = "the kernel takes no further watches: not all repositories are followed; raise the limit with \
                                `sysctl fs.inotify.max_user_watches=524288`";
                    self.notices.limit("inotify", text);
                }
                // Not there yet: it is tried again at the next look.
                Err(_) => (),
            }
        }
    }

    fn look_at(&mut self, work_tree: &Path, now: Instant) {
        let Some(repository) = self.repositories.get_mut(work_tree) else { return };
        let Some((_, since)) = repository.due.take() else { return };
        let layout = repository.layout.clone();
        let is_locked = ["index.lock", "HEAD.lock"].iter().any(|name| layout.git_dir.join(name).exists());
        if is_locked && now.saturating_duration_since(since) < LOCKED {
            repository.due = Some((now + SETTLE, since));
            return;
        }
        if Layout::of(work_tree).as_ref() != Some(&layout) {
            // Gone, or another one; it is followed again when it is found again.
            self.repositories.remove(work_tree);
            self.owners.values_mut().for_each(|owners| owners.retain(|owner| owner != work_tree));
            if work_tree.join(".git").exists() {
                self.follow(work_tree);
            }
            return;
        }
        let after = Snapshot::of(&layout);
        let changes = after.changes(&repository.before, |branch| was_pushed(&layout, branch));
        let stop = stop_of(&after).filter(|stop| repository.conflict_told.as_ref() != Some(stop));
        if after.progress.is_none() {
            repository.conflict_told = None;
        }
        let before = std::mem::replace(&mut repository.before, after.clone());
        let mark = std::mem::replace(&mut repository.mark, Mark { seen: Some(after.seen()), since: None });
        self.watch(&layout);
        let mut seen = after.seen();
        if self.settings.commit {
            let new = new_commits(&layout, &before, &mark, &after);
            seen = new.seen.clone().unwrap_or(seen);
            let part = self.tell_commits(work_tree, new);
            if let Some(repository) = self.repositories.get_mut(work_tree) {
                if let Some(part) = part {
                    let next = Instant::now();
                    repository.due = Some((next, next));
                    seen = part;
                }
                repository.mark.seen = Some(seen.clone());
            }
        }
        self.send_seen(work_tree, seen);
        for change in changes {
            if let Err(error) = self.tell(work_tree, &after, change) {
                self.say_error(work_tree, &error);
            }
        }
        let Some(stop) = stop else { return };
        match Git(work_tree).conflicts() {
            Ok(paths) if paths.is_empty() => (),
            Ok(paths) => {
                self.send(work_tree, conflict(stop.0, paths));
                if let Some(repository) = self.repositories.get_mut(work_tree) {
                    repository.conflict_told = Some(stop);
                }
            }
            Err(error) => self.say_error(work_tree, &error),
        }
    }

    /// Tells of commits. Returns how far, if there was no time for all of them.
    fn tell_commits(&self, work_tree: &Path, new: NewCommits) -> Option<SeenCommit> {
        let NewCommits { mut commits, is_cut, .. } = new;
        if is_cut {
            let text = format!(
                "{}: more commits than {COMMITS} were made since the last look: the latest {COMMITS} are looked into",
                work_tree.display()
            );
            self.notices.once(format!("commits {}", work_tree.display()), text);
        }
        let git = Git(work_tree);
        let until = Instant::now() + self.settings.commits_time;
        // Of one commit it is known that it is there.
        if commits.len() > 1 {
            match git.existing_commits(&commits) {
                Ok(existing) => commits = existing,
                Err(error) => {
                    self.say_error(work_tree, &error);
                    commits.drain(..commits.len() - 1);
                }
            }
        }
        let mut rest = commits.into_iter().peekable();
        while let Some(commit) = rest.next() {
            let seen = commit.seen();
            let id = commit.id;
            // What git cannot say is left out; that there was a commit is known without it.
            let asked = git.summary(&id).and_then(|summary| Ok((summary, git.added_by(&id)?)));
            let (summary, added) = match asked {
                Ok(answer) => answer,
                Err(error) => {
                    self.say_error(work_tree, &error);
                    Default::default()
                }
            };
            self.send(work_tree, GitChange::Commit { id, summary, added });
            if rest.peek().is_some() && Instant::now() >= until {
                return Some(seen);
            }
        }
        None
    }

    fn tell(&self, work_tree: &Path, now: &Snapshot, change: SnapshotChange) -> Result<(), GitError> {
        let git = Git(work_tree);
        let what = match change {
            SnapshotChange::Push { branch } => GitChange::Push { branch },
            // In the middle of a merge the index has all of the other side's work.
            SnapshotChange::Stage if !self.settings.stage || now.progress.is_some() => return Ok(()),
            SnapshotChange::Stage => {
                let head = now.commit.as_deref();
                let sizes = git.staged_sizes(head)?;
                if sizes.is_empty() {
                    return Ok(());
                }
                GitChange::Stage { added: git.added_by_index(head)?, large: sizes }
            }
        };
        self.send(work_tree, what);
        Ok(())
    }

    fn send(&self, work_tree: &Path, what: GitChange) {
        // The receiver lives as long as the process.
        let _ = self.events.send(Event::Git(GitEvent { repository: work_tree.to_owned(), what }));
    }

    fn send_seen(&self, work_tree: &Path, seen: SeenCommit) {
        // As above.
        let _ = self.events.send(Event::CommitsSeen(work_tree.to_owned(), seen));
    }

    fn say_once(&self, work_tree: &Path, why: &str) {
        self.notices.once(
            format!("git {}", work_tree.display()),
            format!("{} is not followed: {why}", work_tree.display()),
        );
    }

    fn say_error(&self, work_tree: &Path, error: &GitError) {
        match error {
            GitError::Missing | GitError::Start(_) => self.notices.limit("git", error),
            GitError::Slow | GitError::Refused(_) => {
                let text =
                    format!("{}: {error}; other repositories are followed as before", work_tree.display());
                self.notices.once(format!("git {}", work_tree.display()), text);
            }
        }
    }
}

fn stop_of(snapshot: &Snapshot) -> Option<Stop> {
    Some((snapshot.progress?, snapshot.commit.clone()))
}

fn conflict(progress: Progress, paths: Vec<String>) -> GitChange {
    match progress {
        Progress::Rebase => GitChange::RebaseFailed { paths },
        Progress::Merge => GitChange::MergeConflict { paths, command: "merge" },
        Progress::CherryPick => GitChange::MergeConflict { paths, command: "cherry-pick" },
        Progress::Revert => GitChange::MergeConflict { paths, command: "revert" },
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
