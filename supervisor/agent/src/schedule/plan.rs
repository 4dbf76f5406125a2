//! From a decision about a job's times to occurrences.

use talon_schedule::{Decision, Job, Overlap};
use talon_store::{NewOccurrence, Occurrence, OccurrenceKind, OccurrenceState, Plan};

use super::timestamps::{from_store, to_store};

/// The most occurrences of a job that wait. 10: more are hours behind, and would run for hours after it.
pub(super) const MAX_WAITING: usize = 10;

/// The occurrences that a decision makes, with `unfinished`, which the job has already.
///
/// Late ones always wait for each other: `missed` bounds them. `overlap` is for those on time.
pub(super) fn plan(
    job: &Job,
    decision: &Decision,
    from: talon_store::Timestamp,
    unfinished: &[&Occurrence],
) -> Plan {
    let new = |planned, kind, missed: Option<&str>| NewOccurrence {
        planned_at: to_store(planned),
        begins_at: to_store(job.begins(planned)),
        kind,
        missed: missed.map(str::to_owned),
    };
    let missed = "the agent did not run at its time; see `missed` of the job";
    let mut occurrences: Vec<NewOccurrence> =
        decision.missed.iter().map(|planned| new(*planned, OccurrenceKind::Planned, Some(missed))).collect();
    let mut waiting =
        unfinished.iter().filter(|occurrence| occurrence.state == OccurrenceState::Planned).count();
    let mut is_busy = !unfinished.is_empty();
    let last = decision.due.last().map(|due| due.planned);
    for due in &decision.due {
        let kind = if due.late { OccurrenceKind::Late } else { OccurrenceKind::Planned };
        let refused = match job.overlap {
            _ if due.late => None,
            Overlap::Skip if is_busy => Some("the job still ran; see `overlap` of the job"),
            Overlap::Queue if waiting >= MAX_WAITING => Some("10 runs of the job waited already"),
            Overlap::Replace if last != Some(due.planned) => Some("a later run replaced it"),
            _ => None,
        };
        if refused.is_none() {
            waiting += 1;
            is_busy |= !due.late;
        }
        occurrences.push(new(due.planned, kind, refused));
    }
    Plan { job: job.id.to_string(), from, to: to_store(decision.progress), occurrences }
}

/// Whether the store has to be told about a decision.
pub(super) fn is_news(decision: &Decision, from: talon_store::Timestamp) -> bool {
    decision.progress != from_store(from)
}
