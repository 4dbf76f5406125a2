//! The recording of one operation.

use std::sync::Arc;

use talon_proto::agent::{Operation, OperationClient};
use tokio::time::Instant;

use super::log::{OperationLog, QueuePermit};
use super::outcome::OperationOutcome;

/// The recording of one operation in flight. Dropped without its end, it says that nobody knows what became of it.
pub(crate) struct OperationRecording {
    log: Arc<OperationLog>,
    /// `None` if it cannot be recorded, or is.
    place: Option<QueuePermit>,
    operation: Operation,
    began: Instant,
}

impl OperationRecording {
    /// Begins to record an operation, whose outcome does not matter yet. Has a place for its record first, so that a client that goes away
    /// takes none of it along.
    pub(crate) async fn begin(log: &Arc<OperationLog>, operation: Operation) -> Self {
        let place = log.reserve(&operation).await;
        let operation = Operation {
            outcome: "unknown".to_owned(),
            problem: "the client went away; it may have been carried out".to_owned(),
            ..operation
        };
        Self { log: Arc::clone(log), place, operation, began: Instant::now() }
    }

    /// Begins to record what a person does over a channel, as what the same person does over the gateway.
    pub(crate) async fn begin_by_person(
        log: &Arc<OperationLog>,
        person: &str,
        verb: &str,
        subject: String,
    ) -> Self {
        let client = OperationClient {
            origin: "person".to_owned(),
            subject: person.to_owned(),
            ..OperationClient::default()
        };
        let operation =
            Operation { client: Some(client), verb: verb.to_owned(), subject, ..Operation::default() };
        Self::begin(log, operation).await
    }

    /// Says more about what it was done to.
    pub(crate) fn add_to_subject(&mut self, more: &str) {
        if !self.operation.subject.is_empty() {
            self.operation.subject.push(' ');
        }
        self.operation.subject.push_str(more);
    }

    /// Records the outcome, and waits until it was written.
    pub(crate) async fn finish(mut self, outcome: OperationOutcome) {
        self.set_outcome(outcome);
        if let Some(place) = self.place.take() {
            let (log, operation) = (Arc::clone(&self.log), self.operation());
            log.write(place, operation).await;
        }
    }

    /// Records the outcome of an operation that nobody is answered, without waiting.
    pub(crate) fn finish_unawaited(mut self, outcome: OperationOutcome) {
        self.set_outcome(outcome);
    }

    /// Records nothing: it turned out to be no operation.
    pub(crate) fn discard(mut self) {
        self.place = None;
    }

    fn set_outcome(&mut self, outcome: OperationOutcome) {
        let (word, problem) = outcome.words();
        word.clone_into(&mut self.operation.outcome);
        problem.clone_into(&mut self.operation.problem);
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
