//! What the event bus is told of a run.

use talon_event_bus::{Payload, excerpt};
use talon_proto::agent::TaskUpdate;
use talon_store::{Occurrence, RunEnd};

pub(super) fn started(run: &Occurrence) -> Payload {
    Payload::TaskStarted(update(run, ""))
}

pub(super) fn ended(run: &Occurrence, end: &RunEnd) -> Payload {
    match end {
        RunEnd::Done(_) => Payload::TaskCompleted(update(run, "")),
        RunEnd::Failed(reason) => Payload::TaskFailed(update(run, reason)),
        RunEnd::Retry { note, .. } => Payload::TaskRetried(update(run, note)),
        RunEnd::Released => Payload::TaskRetried(update(run, "it was interrupted, and goes on later")),
    }
}

fn update(run: &Occurrence, reason: &str) -> TaskUpdate {
    TaskUpdate {
        job: run.job.clone(),
        run: run.planned_at.to_string(),
        subagent: String::new(),
        attempt: run.attempt,
        reason: excerpt(reason).0,
    }
}
