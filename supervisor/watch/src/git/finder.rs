//! How the watcher of files tells the thread of repositories what it found.

use std::path::PathBuf;
use std::sync::mpsc::Sender;

use crate::files::Signals;

/// Tells the thread of repositories that were found.
pub(crate) struct RepositoryFinder {
    sender: Sender<FinderMessage>,
    signals: Signals,
}

pub(super) enum FinderMessage {
    /// A work tree.
    Repository(PathBuf),
    /// All that are there; called with their number once they are followed, and once what happened before is told.
    All(Box<dyn FnOnce(usize) + Send>, LookedAt),
}

/// What is called once everything was looked at.
pub(super) type LookedAt = Box<dyn FnOnce() + Send>;

impl RepositoryFinder {
    pub(super) fn new(sender: Sender<FinderMessage>, signals: Signals) -> Self {
        Self { sender, signals }
    }

    /// A work tree was found. The thread takes each one once; finding it again is harmless.
    pub(crate) fn found(&self, work_tree: PathBuf) {
        self.send(FinderMessage::Repository(work_tree));
    }

    /// All were found. `followed` is called with the number of repositories that are followed, and `looked_at` once none of them waits
    /// for a look, so that what happened before is told.
    pub(crate) fn all_found(
        &self,
        followed: impl FnOnce(usize) + Send + 'static,
        looked_at: impl FnOnce() + Send + 'static,
    ) {
        self.send(FinderMessage::All(Box::new(followed), Box::new(looked_at)));
    }

    fn send(&self, found: FinderMessage) {
        // The thread lives as long as the process.
        let _ = self.sender.send(found);
        self.signals.wake();
    }
}
