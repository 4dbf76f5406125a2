//! What a job runs.

use std::sync::Arc;

use async_trait::async_trait;
use talon_schedule::{Job, Target};
use talon_store::{Occurrence, RunResult};
use tokio_util::sync::CancellationToken;

/// Runs occurrences. What it has begun it finds again, also in another process: an occurrence that was
/// interrupted is run once more with the same row, and must not be begun twice.
#[async_trait]
pub(crate) trait JobTarget: Send + Sync {
    /// Runs an occurrence to its end, or goes on with it. After `stop` it ends soon.
    async fn run(&self, job: &Job, occurrence: &Occurrence, stop: &CancellationToken) -> RunOutcome;
}

/// The target of each kind of job.
pub(crate) struct Targets {
    pub(crate) ask: Arc<dyn JobTarget>,
    pub(crate) action: Arc<dyn JobTarget>,
}

#[async_trait]
impl JobTarget for Targets {
    async fn run(&self, job: &Job, occurrence: &Occurrence, stop: &CancellationToken) -> RunOutcome {
        let target = match job.target {
            Target::Ask { .. } => &self.ask,
            Target::Action { .. } => &self.action,
        };
        target.run(job, occurrence, stop).await
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// It did what it should, with what is kept of an action's answer.
    Done(Option<RunResult>),
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
