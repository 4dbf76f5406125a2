//! Decisions about jobs, for the supervisor's audit log.

use talon_proto::agent::JobDecision;
use tokio::sync::{Mutex, mpsc};

/// The most decisions that wait for the control socket. 64: an operator decides by hand; a further one waits until there is room.
const MAX_WAITING: usize = 64;

/// Decisions that are to be recorded.
pub(crate) struct JobDecisions {
    sender: mpsc::Sender<JobDecision>,
    /// For one reader.
    receiver: Mutex<mpsc::Receiver<JobDecision>>,
}

impl Default for JobDecisions {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        Self { sender, receiver: Mutex::new(receiver) }
    }
}

impl JobDecisions {
    /// Has a decision recorded.
    pub(crate) async fn record(&self, decision: JobDecision) {
        // The receiver lives as long as `self`.
        let _taken = self.sender.send(decision).await;
    }

    /// The next decision.
    pub(crate) async fn next(&self) -> JobDecision {
        match self.receiver.lock().await.recv().await {
            Some(decision) => decision,
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }
}
