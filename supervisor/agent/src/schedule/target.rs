//! What a job runs.

use async_trait::async_trait;
use talon_schedule::Job;
use talon_store::Occurrence;
use tokio_util::sync::CancellationToken;

/// Runs occurrences. What it has begun it finds again, also in another process: an occurrence that was
/// interrupted is run once more with the same row, and must not be begun twice.
#[async_trait]
pub(crate) trait JobTarget: Send + Sync {
    /// Runs an occurrence to its end, or goes on with it. After `stop` it ends soon.
    async fn run(&self, job: &Job, occurrence: &Occurrence, stop: &CancellationToken) -> RunOutcome;
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// It did what it should.
    Done,
    /// It did not.
    Failed {
        /// The reason, for a person.
        reason: String,
        /// Whether another attempt could help.
        retryable: bool,
    },
    /// The agent ends in the middle of it; it goes on later.
    Interrupted,
    /// Another has claimed it.
    Lost,
}

impl RunOutcome {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), retryable: true }
    }
}
