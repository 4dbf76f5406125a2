//! The files of the workspace, read again when they change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_child::SharedRequests;
use talon_store::Timestamp;

use super::file::{self, ReadOutcome, Stamp};
use crate::prompt::{Files, Workspace};

const IDENTITY: &str = "IDENTITY.md";
const SOUL: &str = "SOUL.md";
const USER: &str = "USER.md";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a turn waits for the files: a disk that takes longer hangs, and a prompt with the previous texts
/// is better than none.
pub(crate) const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// The files below a directory. They are read on demand.
#[derive(Debug)]
pub struct WorkspaceFiles {
    directory: Option<PathBuf>,
    /// The cached files. Locked only by a refresh, for as long as the disk takes.
    cache: Mutex<FileCache>,
    /// The result of the last refresh. Never locked while something is read.
    snapshot: Mutex<Snapshot>,
    /// Held by the one refresh with a time limit that may run, so that a disk that hangs blocks only one
    /// thread.
    refresh_lock: Arc<tokio::sync::Mutex<()>>,
    /// Whether a refresh succeeded. Turns that begin while there is one share the next.
    refreshes: SharedRequests<(), bool>,
}

/// The result of a refresh.
#[derive(Debug, Default, Clone)]
struct Snapshot {
    workspace: Workspace,
    problems: Vec<String>,
}

#[derive(Debug, Default)]
struct FileCache {
    files: BTreeMap<String, CachedFile>,
    problems: Vec<String>,
}

/// A file as it was last read.
#[derive(Debug)]
struct CachedFile {
    stamp: Stamp,
    text: String,
    problem: Option<&'static str>,
}

impl WorkspaceFiles {
    /// The files below this directory; without one, the built-in texts.
    #[must_use]
    pub fn new(directory: impl Into<Option<PathBuf>>) -> Self {
        Self {
            directory: directory.into(),
            cache: Mutex::default(),
            snapshot: Mutex::default(),
            refresh_lock: Arc::default(),
            refreshes: SharedRequests::default(),
        }
    }

    /// The current contents. Reads changed files, which blocks for as long as the file system does.
    #[must_use]
    pub fn current(&self) -> Workspace {
        self.on(Timestamp::now())
    }

    /// The files' problems, each with what to do. Reads changed files, and blocks.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let _ = self.current();
        self.snapshot.lock().problems.clone()
    }

    /// The current contents; if they cannot be read within this time, the previous ones or the built-in
    /// texts.
    pub async fn current_within(self: &Arc<Self>, wait: Duration) -> Workspace {
        if !self.refresh_within(wait).await {
            tracing::warn!(target: "agent", "the workspace's files cannot be looked at: the texts that were read last stand");
        }
        self.snapshot.lock().workspace.clone()
    }

    /// The files' problems, each with what to do; one of them may be that they cannot be read within this
    /// time.
    pub async fn problems_within(self: &Arc<Self>, wait: Duration) -> Vec<String> {
        let looked = self.refresh_within(wait).await;
        let mut problems = self.snapshot.lock().problems.clone();
        if let Some(directory) = self.directory.as_ref().filter(|_| !looked) {
            problems.push(format!(
                "{}: the workspace's files cannot be looked at within {wait:?}, so the texts that were read last stand; see whether its \
                 disk answers",
                directory.display()
            ));
        }
        problems
    }

    /// Refreshes the files, and returns whether that succeeded in time.
    async fn refresh_within(self: &Arc<Self>, wait: Duration) -> bool {
        if self.directory.is_none() {
            return true;
        }
        let looked = self.refreshes.ask((), || Arc::clone(self).refresh());
        tokio::time::timeout(wait, looked).await.unwrap_or(false)
    }

    async fn refresh(self: Arc<Self>) -> bool {
        let turn = Arc::clone(&self.refresh_lock).lock_owned().await;
        let refreshed = tokio::task::spawn_blocking(move || {
            let _ = self.current();
            // It also holds the lock after its caller gave up, so that the next refresh starts after it.
            drop(turn);
        });
        refreshed.await.is_ok()
    }

    /// The problems found by the last refresh.
    #[cfg(test)]
    pub(super) fn cached_problems(&self) -> Vec<String> {
        self.snapshot.lock().problems.clone()
    }

    /// Makes every refresh hang, like a disk.
    #[cfg(test)]
    pub(super) fn hang(&self) -> impl Drop + use<'_> {
        self.cache.lock()
    }

    /// The contents as of another day.
    pub(super) fn on(&self, now: Timestamp) -> Workspace {
        let Some(directory) = &self.directory else { return Workspace::default() };
        let days = days(now);
        let mut seen = self.cache.lock();
        seen.refresh(directory, &days);
        let text = |name: &str| seen.files.get(name).map(|file| file.text.as_str());
        let daily: Vec<(&str, &str)> =
            days.iter().filter_map(|day| Some((day.as_str(), text(&of_day(day))?))).collect();
        let files = Files { identity: text(IDENTITY), soul: text(SOUL), user: text(USER), daily: &daily };
        let workspace = Workspace::new(files);
        *self.snapshot.lock() = Snapshot { workspace: workspace.clone(), problems: seen.problems.clone() };
        workspace
    }
}

impl FileCache {
    fn refresh(&mut self, directory: &Path, days: &[String]) {
        self.problems.clear();
        let root = match file::directory(directory) {
            Ok(root) => root,
            Err(error) => {
                self.files.clear();
                self.problems.push(format!(
                    "{}: the workspace cannot be opened ({error}), so built-in texts stand for its files; make it a directory that the \
                     agent's user may read, or correct agent.workspace",
                    directory.display()
                ));
                return;
            }
        };
        let names: Vec<String> = [IDENTITY, SOUL, USER]
            .map(str::to_owned)
            .into_iter()
            .chain(days.iter().map(|day| of_day(day)))
            .collect();
        // Files of past days, too.
        self.files.retain(|name, _| names.contains(name));
        for name in names {
            let before = self.files.get(&name).map(|file| file.stamp);
            match file::read(&root, &name, before) {
                ReadOutcome::Same => {}
                ReadOutcome::Missing => drop(self.files.remove(&name)),
                ReadOutcome::New { stamp, text, problem } => {
                    self.files.insert(name.clone(), CachedFile { stamp, text, problem });
                }
                ReadOutcome::Refused(why) => {
                    self.files.remove(&name);
                    self.problems.push(format!("{}: {why}", directory.join(&name).display()));
                }
            }
            if let Some(problem) = self.files.get(&name).and_then(|file| file.problem) {
                self.problems.push(format!("{}: {problem}", directory.join(&name).display()));
            }
        }
    }
}

fn of_day(day: &str) -> String {
    format!("memory/{day}.md")
}

/// The days whose notes may be today's or yesterday's, newest first; the prompt shows the first two that
/// exist. A service does not know the person's time zone, in which today is this day by UTC, the previous or
/// the next one; yesterday is the day before that.
fn days(now: Timestamp) -> Vec<String> {
    let millis = i64::try_from(DAY.as_millis()).unwrap_or(i64::MAX);
    let tomorrow = Timestamp::from_millis(now.as_millis().saturating_add(millis));
    let each =
        (0..4).map(|back| tomorrow.before(DAY * back).to_string().chars().take("2026-11-22".len()).collect());
    each.collect()
}
