//! Which occurrences of a job are due, and which were missed.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::job::Job;
use crate::missed::{MAX_MISSED_RUNS, MissedPolicy};

/// How late an occurrence may begin without being missed. A minute: a restart of the agent, a slow disk, or a
/// busy machine delays a job and does not make it a missed one.
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// How far a job's progress may be ahead of the clock. When the clock was set back by more, the progress
/// begins anew at the present time; the stored occurrences still run only once. An hour: corrections by a time
/// server are smaller.
const MAX_AHEAD: SignedDuration = SignedDuration::from_secs(3600);
/// The most planned times that one decision looks at. 10,000: some milliseconds of work; a longer downtime
/// takes several decisions.
const MAX_LOOKED_AT: usize = 10_000;
/// The most missed times of one decision that are in the history, the latest ones; the others are counted.
const MAX_RECORDED: usize = MAX_MISSED_RUNS;

/// How far a job's planned times were looked at: up to and including this time. A new job begins at the
/// present time.
pub type Progress = Timestamp;

/// What to do about a job's planned times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Planned times that run now, in their order: missed ones first.
    pub due: Vec<Due>,
    /// Planned times that were missed and do not run: for the history.
    pub missed: Vec<Timestamp>,
    /// Older missed times that are not recorded one by one.
    pub unrecorded: u64,
    /// Up to which planned time everything is decided by this.
    pub progress: Progress,
    /// When to decide again; `None` if nothing is planned any more.
    pub next: Option<Timestamp>,
}

/// A planned time that runs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The planned time.
    pub planned: Timestamp,
    /// Whether it was missed, and runs late.
    pub late: bool,
}

/// Decides on all planned times after `progress` that have begun by `now`.
///
/// The same planned time is in no two decisions, as long as each begins with the progress of the one before
/// and the clock is not set back by more than an hour.
#[must_use]
pub fn decide(job: &Job, progress: Progress, now: Timestamp) -> Decision {
    let progress = if progress.duration_since(now) > MAX_AHEAD { now } else { progress };
    let mut decision = Decision { due: Vec::new(), missed: Vec::new(), unrecorded: 0, progress, next: None };
    let keep = MAX_RECORDED + job.missed.most();
    // The latest missed times, and all that are not missed.
    let (mut missed, mut on_time) = (VecDeque::new(), Vec::new());
    for (looked_at, planned) in job.recurrence.times_after(progress).enumerate() {
        let begins = job.begins(planned);
        if begins > now {
            decision.next = Some(begins);
            break;
        }
        if looked_at == MAX_LOOKED_AT {
            // What may still run is looked at again, with the rest.
            return decision.interrupted(missed, job.missed.most(), now);
        }
        if now.duration_since(begins) <= GRACE {
            on_time.push(planned);
        } else {
            missed.push_back(planned);
        }
        if missed.len() > keep {
            missed.pop_front();
            decision.unrecorded += 1;
        }
        decision.progress = planned;
    }
    // Of several that are on time, as of a job every second, each runs; `once` then has its run already.
    let run_late = match job.missed {
        MissedPolicy::Once if !on_time.is_empty() => 0,
        policy => policy.most(),
    };
    let late = missed.split_off(missed.len().saturating_sub(run_late));
    decision.record(missed);
    decision.due = late.into_iter().map(|planned| Due { planned, late: true }).collect();
    decision.due.extend(on_time.into_iter().map(|planned| Due { planned, late: false }));
    decision
}

impl Decision {
    /// A decision on the oldest times of a long downtime alone.
    fn interrupted(mut self, mut missed: VecDeque<Timestamp>, may_run: usize, now: Timestamp) -> Self {
        let later = missed.split_off(missed.len().saturating_sub(may_run));
        // More were looked at than may run.
        self.progress = missed.back().copied().unwrap_or(self.progress);
        drop(later);
        self.record(missed);
        self.next = Some(now);
        self
    }

    fn record(&mut self, mut missed: VecDeque<Timestamp>) {
        let recorded = missed.split_off(missed.len().saturating_sub(MAX_RECORDED));
        self.unrecorded += missed.len() as u64;
        self.missed = recorded.into();
    }
}

/// How long until `at`, at most `most`: a clock that is set is noticed after that.
#[must_use]
pub fn wait(now: Timestamp, at: Option<Timestamp>, most: Duration) -> Duration {
    let until = at.map(|at| now.duration_until(at));
    match until {
        Some(until) if until.is_negative() => Duration::ZERO,
        Some(until) => until.unsigned_abs().min(most),
        None => most,
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
