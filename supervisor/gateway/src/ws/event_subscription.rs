//! What messages of a connection need of the sequence of its events: that nothing is asked before it would tell what comes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::events::client_message::Resume;
use crate::problem::{Problem, ProblemKind};
use crate::session_events::Progress;

/// How long a message waits for its events to be followed: as long as an agent takes to start again, and some more.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The messages' end of what a connection follows. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct EventSubscription {
    /// With the ids of their messages.
    resumes: mpsc::Sender<(String, Resume)>,
    /// How many were put there.
    asked: Arc<AtomicU64>,
    progress: Progress,
}

impl EventSubscription {
    /// Cursors go to `resumes`; `progress` says how many of them were taken.
    pub(super) fn new(resumes: mpsc::Sender<(String, Resume)>, progress: Progress) -> Self {
        Self { resumes, asked: Arc::default(), progress }
    }

    /// Goes on from the client's cursors, those of the message with this id.
    pub(super) async fn resume(&self, id: &str, resume: Resume) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        // Whoever would take it has ended only with the connection.
        let _taken = self.resumes.send((id.to_owned(), resume)).await;
    }

    /// How many cursors were put before, for [`EventSubscription::wait`].
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Waits until the events are followed, those cursors taken.
    ///
    /// # Errors
    /// They are not in time, since there is no agent.
    pub(super) async fn wait(&self, asked: u64) -> Result<(), Problem> {
        let mut progress = self.progress.clone();
        let followed = progress.wait_for(|told| told.is_some_and(|told| told >= asked));
        match timeout(MAX_WAIT, followed).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Problem::new(
                ProblemKind::Unavailable,
                "what comes of this message is not followed yet: send it again, under the same id",
            )),
        }
    }
}
