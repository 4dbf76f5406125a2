//! What to do about occurrences that are not finished.

use std::collections::{BTreeMap, BTreeSet};

use talon_schedule::{Job, Overlap};
use talon_store::{Occurrence, OccurrenceKind, OccurrenceState, Timestamp};

use crate::jobs::Jobs;

/// The most runs at once. 16: each is a turn, of which the agent has 64 at once; the others are for people.
pub(super) const MAX_RUNS: usize = 16;

/// What identifies an occurrence.
pub(super) type Key = (String, Timestamp);

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Claim it and run it, or go on with it.
    Claim(Key),
    /// Cancel the run of this process, since a later one replaces it.
    Cancel(Key),
    /// It will not run, for this reason.
    Miss(Key, &'static str),
    /// Nobody runs it any more, and its job is not configured: claim it and end it.
    Abandon(Key),
}

/// What is known at one moment.
pub(super) struct Situation<'s> {
    pub(super) jobs: &'s Jobs,
    /// The jobs that rest.
    pub(super) resting: &'s BTreeSet<String>,
    /// In the order in which they begin.
    pub(super) unfinished: &'s [Occurrence],
    /// What this process runs.
    pub(super) running_here: &'s BTreeSet<Key>,
    pub(super) now: Timestamp,
}

/// The next steps, and when to look again.
pub(super) fn steps(situation: &Situation<'_>) -> (Vec<Step>, Option<Timestamp>) {
    let mut by_job: BTreeMap<&str, Vec<&Occurrence>> = BTreeMap::new();
    for occurrence in situation.unfinished {
        by_job.entry(&occurrence.job).or_default().push(occurrence);
    }
    let (mut steps, mut next) = (Vec::new(), None);
    for (id, occurrences) in by_job {
        match situation.jobs.get(id) {
            Some(job) => of_job(situation, job, &occurrences, &mut steps, &mut next),
            None => of_no_job(situation, &occurrences, &mut steps, &mut next),
        }
    }
    let free = MAX_RUNS.saturating_sub(situation.running_here.len());
    let mut claims = 0;
    // What does not fit is looked at when a run has ended.
    steps.retain(|step| {
        claims += usize::from(matches!(step, Step::Claim(_)));
        !matches!(step, Step::Claim(_)) || claims <= free
    });
    (steps, next)
}

fn key(occurrence: &Occurrence) -> Key {
    (occurrence.job.clone(), occurrence.planned_at)
}

fn earlier(next: &mut Option<Timestamp>, at: Timestamp) {
    *next = Some(next.map_or(at, |next| next.min(at)));
}

fn of_job(
    situation: &Situation<'_>,
    job: &Job,
    occurrences: &[&Occurrence],
    steps: &mut Vec<Step>,
    next: &mut Option<Timestamp>,
) {
    let now = situation.now;
    let rests = situation.resting.contains(job.id.as_str());
    let is_planned = |occurrence: &&&Occurrence| occurrence.state == OccurrenceState::Planned;
    let may_begin = |occurrence: &&&Occurrence| !rests || occurrence.kind == OccurrenceKind::Manual;
    let (mut due, later): (Vec<&Occurrence>, Vec<&Occurrence>) = occurrences
        .iter()
        .filter(is_planned)
        .filter(may_begin)
        .copied()
        .partition(|occurrence| occurrence.begins_at <= now);
    if let Some(begins) = later.iter().map(|occurrence| occurrence.begins_at).min() {
        earlier(next, begins);
    }
    let running = occurrences.iter().find(|occurrence| occurrence.state == OccurrenceState::Running);
    if job.overlap == Overlap::Replace
        && let Some(latest) = due.iter().map(|occurrence| occurrence.planned_at).max()
    {
        let replaced = due.iter().filter(|occurrence| occurrence.planned_at != latest);
        steps.extend(replaced.map(|occurrence| Step::Miss(key(occurrence), "a later run replaced it")));
        due.retain(|occurrence| occurrence.planned_at == latest);
        let here = running.map(|running| key(running)).filter(|key| situation.running_here.contains(key));
        steps.extend(here.filter(|(_, planned)| *planned < latest).map(Step::Cancel));
    }
    match running {
        Some(running) if situation.running_here.contains(&key(running)) => {}
        // Whoever ran it is gone.
        Some(running) if running.lease_until <= now => steps.push(Step::Claim(key(running))),
        Some(running) => earlier(next, running.lease_until),
        None => steps.extend(due.first().map(|first| Step::Claim(key(first)))),
    }
}

fn of_no_job(
    situation: &Situation<'_>,
    occurrences: &[&Occurrence],
    steps: &mut Vec<Step>,
    next: &mut Option<Timestamp>,
) {
    for occurrence in occurrences {
        let key = key(occurrence);
        match occurrence.state {
            OccurrenceState::Planned => steps.push(Step::Miss(key, "the job is not configured any more")),
            _ if situation.running_here.contains(&key) => {}
            _ if occurrence.lease_until <= situation.now => steps.push(Step::Abandon(key)),
            _ => earlier(next, occurrence.lease_until),
        }
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
