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

/// The target of each kind of job, and where their answers go.
pub(crate) struct Targets {
    pub(crate) ask: Arc<dyn JobTarget>,
    pub(crate) action: Arc<dyn JobTarget>,
    pub(crate) answers: Arc<dyn AnswerSink>,
}

/// Takes the answers of jobs with `deliver`.
#[async_trait]
pub(crate) trait AnswerSink: Send + Sync {
    /// Has an answer told to a notification entry. A run whose end was not stored is told again, with the same id.
    ///
    /// # Errors
    /// Why not, for a person.
    async fn deliver(&self, to: &str, occurrence: &Occurrence, answer: &RunAnswer) -> Result<(), String>;
}

#[async_trait]
impl JobTarget for Targets {
    async fn run(&self, job: &Job, occurrence: &Occurrence, stop: &CancellationToken) -> RunOutcome {
        let target = match job.target {
            Target::Ask { .. } => &self.ask,
            Target::Action { .. } => &self.action,
        };
        let outcome = target.run(job, occurrence, stop).await;
        let (RunOutcome::Done(answer), Some(to)) = (&outcome, &job.deliver) else { return outcome };
        match self.answers.deliver(to, occurrence, answer).await {
            Ok(()) => outcome,
            // Another attempt would do all of it again.
            Err(why) => {
                let reason = format!("it was done, and its answer was not delivered to {to}: {why}");
                RunOutcome::Failed { reason, retryable: false }
            }
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunAnswer {
    /// Its text, whole.
    pub(crate) text: String,
    /// The conversation, of a question.
    pub(crate) session: Option<String>,
    /// What the history keeps of it. A question has it in its conversation.
    pub(crate) kept: Option<RunResult>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunOutcome {
    /// It did what it should.
    Done(RunAnswer),
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
