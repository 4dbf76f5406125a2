//! How far retention is.

use std::path::Path;
use std::sync::OnceLock;

use parking_lot::Mutex;
use talon_proto::agent::RetentionStatus;

use super::export_directory::{ExportDirectory, ExportUsage};

/// The directory of the exports, below the agent's own.
const EXPORTS: &str = "exports";

/// How far it is.
#[derive(Default)]
pub(crate) struct RetentionLog {
    directory: OnceLock<ExportDirectory>,
    state: Mutex<RetentionState>,
}

#[derive(Debug, Default)]
struct RetentionState {
    deleted: u64,
    usage: ExportUsage,
    problem: String,
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

    /// Counts a session that was deleted.
    pub(crate) fn count_deleted(&self) {
        self.state.lock().deleted += 1;
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
