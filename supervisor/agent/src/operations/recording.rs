//! The recording of one operation.

use std::sync::Arc;

use talon_proto::agent::Operation;
use tokio::time::Instant;

use super::log::{OperationLog, Place};

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationOutcome<'o> {
    /// It was carried out.
    Done,
    /// The client may not, and why.
    Denied(&'o str),
    /// It was not carried out, and why.
    Failed(&'o str),
}

/// The recording of one operation in flight. Dropped without its end, it says that nobody knows what became of it.
pub(crate) struct OperationRecording {
    log: Arc<OperationLog>,
    /// `None` if it cannot be recorded, or is.
    place: Option<Place>,
    operation: Operation,
    began: Instant,
}

impl OperationRecording {
    /// Begins to record an operation, whose outcome does not matter yet. Has a place for its record first, so that a client that goes away
    /// takes none of it along.
    pub(crate) async fn begin(log: &Arc<OperationLog>, operation: Operation) -> Self {
        let place = log.reserve(&operation.verb).await;
        let operation = Operation {
            outcome: "unknown".to_owned(),
            problem: "the client went away; it may have been carried out".to_owned(),
            ..operation
        };
        Self { log: Arc::clone(log), place, operation, began: Instant::now() }
    }

    /// Says more about what it was done to.
    pub(crate) fn add_to_subject(&mut self, more: &str) {
        if !self.operation.subject.is_empty() {
            self.operation.subject.push(' ');
        }
        self.operation.subject.push_str(more);
    }

    /// Records the outcome, and waits until it was written.
    pub(crate) async fn finish(mut self, outcome: OperationOutcome<'_>) {
        let (word, problem) = match outcome {
            OperationOutcome::Done => ("done", ""),
            OperationOutcome::Denied(why) => ("denied", why),
            OperationOutcome::Failed(why) => ("failed", why),
        };
        word.clone_into(&mut self.operation.outcome);
        problem.clone_into(&mut self.operation.problem);
        if let Some(place) = self.place.take() {
            let (log, operation) = (Arc::clone(&self.log), self.operation());
            log.write(place, operation).await;
        }
    }

    fn operation(&mut self) -> Operation {
        let duration_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        Operation { duration_us, ..std::mem::take(&mut self.operation) }
    }
}

impl Drop for OperationRecording {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            let operation = self.operation();
            self.log.write_later(place, operation);
        }
    }
}
