//! An occurrence for tests.

use talon_store::{Occurrence, OccurrenceKind, OccurrenceState, Timestamp};

/// A planned occurrence, at milliseconds since the beginning of 1970.
pub(super) fn occurrence(job: &str, millis: i64) -> Occurrence {
    let at = Timestamp::from_millis(millis);
    Occurrence {
        job: job.to_owned(),
        planned_at: at,
        begins_at: at,
        kind: OccurrenceKind::Planned,
        state: OccurrenceState::Planned,
        attempt: 0,
        holder: None,
        epoch: 0,
        lease_until: Timestamp::from_millis(0),
        started_at: None,
        ended_at: None,
        session: None,
        turn: None,
        note: String::new(),
        called_at: None,
        result: None,
    }
}
