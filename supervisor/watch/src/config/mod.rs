//! The watcher's configuration, `~/.config/talon/watch.yaml`, with all of it under `shadow:`.
//!
//! Keys have our spelling, and OpenTalon's as an alias. Nothing is watched unless `enabled` is true, and then
//! only what `watchers.filesystem.paths` names.

mod check;
mod duration;
mod file;

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

pub(crate) use check::{checked, overrides};
pub(crate) use duration::Span;
pub(crate) use file::{default_path, load};

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    pub(crate) shadow: Config,
}

/// `shadow`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Whether anything is watched. Default: false.
    pub(crate) enabled: bool,
    pub(crate) watchers: Watchers,
    /// The least time between two ghosts; a bare number is milliseconds. The agent goes by the stricter of
    /// this and its own. Default: the agent's.
    pub(crate) cooldown: Option<Span>,
    /// The most ghosts in an hour, likewise.
    #[serde(alias = "maxGhostsPerHour")]
    pub(crate) max_ghosts_per_hour: Option<u32>,
    /// After how long without any event a moment counts as idle. Default: 90 s; a person who reads or thinks
    /// makes pauses of a minute.
    pub(crate) idle: Span,
    /// Programs that check saved files. Default: none, since they run what a repository says.
    pub(crate) checkers: Vec<Checker>,
    /// Whether observations that the agent has not taken yet are kept in a file below `~/.local/state/talon/watch`, for a
    /// day at most. Default: true; without it they are lost when the watcher is killed.
    pub(crate) spool: bool,
    /// Whether ghosts are shown on the desktop, by `notify-send`. Default: false.
    pub(crate) desktop_notifications: bool,
}

/// `shadow.watchers`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Watchers {
    pub(crate) filesystem: Filesystem,
    pub(crate) shell: Shell,
    pub(crate) git: Git,
}

/// `shadow.watchers.filesystem`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filesystem {
    /// The directories that are watched, with everything below. `~/` is the home directory. Default: none.
    pub(crate) paths: Vec<PathBuf>,
    /// Globs of what is not looked at, as in a .gitignore file; those files count as well. Default: none.
    pub(crate) ignore: Vec<String>,
    /// Which changes count. Default: all.
    pub(crate) events: Vec<FileKind>,
    /// How many files are remembered. Default: 200,000, some 20 MB. What is beyond it is not watched, which
    /// is said once.
    pub(crate) max_files: usize,
    /// How many directories are watched: the kernel has a limit of its own, and keeps about 1 KiB for each.
    /// Default: 50,000.
    pub(crate) max_directories: usize,
}

/// Of `shadow.watchers.filesystem.events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileKind {
    Add,
    Change,
    Unlink,
}

/// `shadow.watchers.shell`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Shell {
    /// Whether messages of `talon shell-init` are taken. Default: true.
    pub(crate) enabled: bool,
    /// A history file that is followed, for shells without the integration. It has commands and no exit codes.
    /// Default: none.
    #[serde(alias = "historyFile")]
    pub(crate) history_file: Option<PathBuf>,
    /// Whether failed commands count. Default: true.
    #[serde(alias = "watchErrors")]
    pub(crate) watch_errors: bool,
    /// Whether shells with the integration show a ghost that waits before their next prompt. Default: false.
    pub(crate) show_ghosts: bool,
}

/// `shadow.watchers.git`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Git {
    /// Whether repositories below the watched directories are followed. Default: true.
    pub(crate) enabled: bool,
    /// What counts. Default: all.
    pub(crate) events: Vec<GitKind>,
    /// From which size on a staged file is large. Default: 5 MiB; forges warn at 50 MiB, when it is too late.
    pub(crate) large_file_bytes: u64,
}

/// Of `shadow.watchers.git.events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GitKind {
    Commit,
    Push,
    #[serde(alias = "merge-conflict")]
    MergeConflict,
    #[serde(alias = "rebase-failed")]
    RebaseFailed,
    Stage,
}

/// An entry of `shadow.checkers`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checker {
    /// The directory that opts in, and in which the program runs.
    pub(crate) directory: PathBuf,
    /// The program and its arguments; no shell is between.
    pub(crate) command: Vec<String>,
    /// Globs of the files whose saving starts it. Default: all files.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    /// After which time it is stopped. Default: 60 s.
    #[serde(default = "checker_timeout")]
    pub(crate) timeout: Span,
}

fn checker_timeout() -> Span {
    Span(Duration::from_secs(60))
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: false,
            watchers: Watchers::default(),
            cooldown: None,
            max_ghosts_per_hour: None,
            idle: Span(Duration::from_secs(90)),
            checkers: Vec::new(),
            spool: true,
            desktop_notifications: false,
        }
    }
}

impl Default for Filesystem {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            ignore: Vec::new(),
            events: vec![FileKind::Add, FileKind::Change, FileKind::Unlink],
            max_files: 200_000,
            max_directories: 50_000,
        }
    }
}

impl Default for Shell {
    fn default() -> Self {
        Self { enabled: true, history_file: None, watch_errors: true, show_ghosts: false }
    }
}

impl Default for Git {
    fn default() -> Self {
        let events = vec![
            GitKind::Commit,
            GitKind::Push,
            GitKind::MergeConflict,
            GitKind::RebaseFailed,
            GitKind::Stage,
        ];
        Self { enabled: true, events, large_file_bytes: 5 << 20 }
    }
}

#[cfg(test)]
mod tests;
