//! How far retention is, and which sessions were deleted.

use std::path::Path;
use std::sync::OnceLock;

use parking_lot::Mutex;
use talon_proto::agent::{RetentionStatus, SessionRemoval};
use tokio::sync::mpsc;

use super::export_directory::{ExportDirectory, ExportUsage};

/// The most removals that wait for the control socket. 64: a further one waits until there is room.
const MAX_WAITING: usize = 64;
/// The directory of the exports, below the agent's own.
const EXPORTS: &str = "exports";

/// How far it is.
pub(crate) struct RetentionLog {
    directory: OnceLock<ExportDirectory>,
    state: Mutex<RetentionState>,
    sender: mpsc::Sender<SessionRemoval>,
    /// For one reader.
    receiver: tokio::sync::Mutex<mpsc::Receiver<SessionRemoval>>,
}

#[derive(Debug, Default)]
struct RetentionState {
    deleted: u64,
    usage: ExportUsage,
    problem: String,
}

impl Default for RetentionLog {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        Self {
            directory: OnceLock::new(),
            state: Mutex::default(),
            sender,
            receiver: tokio::sync::Mutex::new(receiver),
        }
    }
}

impl RetentionLog {
    /// Sets the agent's own directory. The first one stays; an empty path is none.
    pub(crate) fn set_home(&self, home: &str) {
        if !home.is_empty() {
            let _first_stays = self.directory.set(ExportDirectory::new(Path::new(home).join(EXPORTS)));
        }
    }

    /// Where sessions are written; `None` without a directory of the agent's own.
    pub(crate) fn directory(&self) -> Option<&ExportDirectory> {
        self.directory.get()
    }

    /// Notes what the directory holds, and why sessions that are old enough are still there; empty if nothing is wrong.
    pub(crate) fn set(&self, usage: ExportUsage, problem: String) {
        let mut state = self.state.lock();
        state.usage = usage;
        state.problem = problem;
    }

    /// Why sessions that are old enough are still there.
    pub(crate) fn problem(&self) -> Option<String> {
        Some(self.state.lock().problem.clone()).filter(|problem| !problem.is_empty())
    }

    /// Counts a session that was deleted, and has the supervisor record what became of one. What waits for it when the process ends is not
    /// recorded; `docs/state.md` says so.
    pub(crate) async fn record(&self, removal: SessionRemoval) {
        if removal.problem.is_empty() {
            self.state.lock().deleted += 1;
        }
        // The receiver lives as long as `self`.
        let _taken = self.sender.send(removal).await;
    }

    /// The next removal for the supervisor.
    pub(crate) async fn next(&self) -> SessionRemoval {
        match self.receiver.lock().await.recv().await {
            Some(removal) => removal,
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }

    /// What clients are told.
    pub(crate) fn status(&self, delete_after_seconds: u64, exports: bool) -> RetentionStatus {
        let state = self.state.lock();
        let directory = self.directory().filter(|_| exports);
        RetentionStatus {
            delete_after_seconds,
            export_directory: directory.map(ExportDirectory::display).unwrap_or_default(),
            exported_files: state.usage.files,
            exported_bytes: state.usage.bytes,
            deleted: state.deleted,
            problem: state.problem.clone(),
        }
    }
}
