//! The settings that all plugins of one supervisor share, and the errors of its setup.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use talon_wire::frames::FrameLimits;

use crate::model_sockets::ModelSockets;
use crate::state_sockets::StateSockets;

/// Everything the plugins of one supervisor share. The binary fills it from its configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of sockets and the plugins' runtime directories. Created with mode 0711 and locked; a
    /// second supervisor on the same directory is refused. Short: a socket path below it must fit into 107
    /// bytes.
    pub runtime_dir: PathBuf,
    /// The directory of the plugins' log files; `None` keeps log lines in memory and in the supervisor's own
    /// log only.
    pub log_dir: Option<PathBuf>,
    /// The directory of `identities.json` (the uid of each plugin) and the homes of services. It is private:
    /// created with mode 0700, or 0711 if plugins have their own uids, and refused if it is more open.
    pub data_dir: PathBuf,
    /// The uids for plugins, one each. `None` keeps the supervisor's own uid, as an unprivileged supervisor
    /// must.
    pub uid_range: Option<RangeInclusive<u32>>,
    /// How many plugins start at once; the others wait for their turn, and their start timeout begins only
    /// then. See [`default_start_concurrency`].
    pub start_concurrency: usize,
    /// The names of environment variables that plugins inherit from the supervisor.
    pub env_allow_list: Vec<String>,
    /// What one connection to a plugin may bring beside its answers.
    pub frames: FrameLimits,
    /// Bounds of the plugins' logs.
    pub log_limits: LogLimits,
    /// The provider of key-value stores. `None`: plugins have none and get no socket.
    pub state: Option<Arc<dyn StateSockets>>,
    /// The provider of completions of language models. `None`: plugins get no socket for them, whatever their
    /// specs say.
    pub models: Option<Arc<dyn ModelSockets>>,
}

/// Bounds of one plugin's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Lines kept in memory for `talon plugin logs`. 1,000 lines: what a person scrolls through.
    pub ring_lines: usize,
    /// The longest line in bytes; the rest of a longer one is cut and counted. 8 KiB holds a stack trace's
    /// line.
    pub line_bytes: usize,
    /// Lines a second that a plugin may log over a long time; more are dropped and counted. 1,000. Every 256
    /// bytes of a long line count as a line.
    pub lines_per_second: u32,
    /// Lines at once above that rate. 5,000: a plugin that dumps its configuration at its start.
    pub burst_lines: u32,
    /// The size at which a log file is rotated, in bytes. 10 MiB.
    pub file_bytes: u64,
    /// Rotated files kept beside the current one. 3.
    pub rotated_files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            ring_lines: 1000,
            line_bytes: 8 << 10,
            lines_per_second: 1000,
            burst_lines: 5000,
            file_bytes: 10 << 20,
            rotated_files: 3,
        }
    }
}

/// Twice the number of cores: a start waits for its plugin about half the time, and more at once would only
/// slow all of them down until they run into their start timeout.
#[must_use]
pub fn default_start_concurrency() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get() * 2)
}

/// Why the plugin part of the supervisor cannot start. The text ends with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Another supervisor holds the runtime directory.
    #[error(
        "another supervisor{} runs on {}: stop it, or give this one another runtime_dir",
        holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default(),
        runtime_dir.display()
    )]
    AlreadyRunning {
        /// The directory.
        runtime_dir: PathBuf,
        /// The pid in its lock file.
        holder: Option<u32>,
    },
    /// A socket below the runtime directory would have a path too long for a unix socket.
    #[error(
        "runtime_dir {} is too long: {length} bytes, and at most {limit} leave room for a plugin's socket; \
         choose a shorter one",
        runtime_dir.display()
    )]
    PathTooLong {
        /// The directory.
        runtime_dir: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The longest that works.
        limit: usize,
    },
    /// A directory or file belongs to another user, or others may write to it.
    #[error("{} cannot be trusted: {problem}; fix its owner and mode, or choose another directory", path.display())]
    Untrusted {
        /// The directory or file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A private directory belongs to another user, or others may read it.
    #[error("{} {problem}: run `{command}`{hint}", path.display())]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to run.
        command: String,
        /// What else has to be changed, if anything; begins with a space.
        hint: &'static str,
    },
    /// A directory or file could not be made, read or locked.
    #[error("cannot {what} {}: {source}; check that the directory exists and that this user may write there", path.display())]
    Io {
        /// What was tried: "create", "lock", "read", …
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The stored uids cannot be parsed.
    #[error("{} is damaged: {problem}; restore it from a backup, or remove it to hand out uids anew", path.display())]
    Identities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A setting that cannot work.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it, and what to do.
        problem: String,
    },
}
