//! One occurrence, from its claim to its end.

use std::time::Duration;

use talon_schedule::{Job, Timestamp as ScheduleTime};
use talon_store::limits::MAX_NOTE_BYTES;
use talon_store::{Occurrence, RunEnd, RunHandle, Schedule};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::target::{JobTarget, RunOutcome};
use super::timestamps::to_store;

/// How long a claim holds without being renewed. A minute: an agent that was killed on another machine is
/// noticed after it, and a database that is away for less takes no run from anybody.
pub(super) const LEASE: Duration = Duration::from_secs(60);
/// How often a claim is renewed: three times in [`LEASE`].
const RENEWAL: Duration = Duration::from_secs(20);

/// Why a run is stopped before its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopReason {
    Deadline,
    Replaced,
    Lost,
}

/// What a run needs.
pub(super) struct Performance<'p> {
    pub(super) schedule: &'p dyn Schedule,
    pub(super) target: &'p dyn JobTarget,
    pub(super) job: &'p Job,
    pub(super) occurrence: &'p Occurrence,
    /// Cancelled when a later run replaces it.
    pub(super) replaced: &'p CancellationToken,
}

impl Performance<'_> {
    /// Runs the occurrence until its target, its deadline, a later run, or a lost claim ends it. Returns how
    /// its row ends at `now`; `None` if it is another's.
    pub(super) async fn run(&self, now: impl Fn() -> ScheduleTime) -> Option<RunEnd> {
        let stop = CancellationToken::new();
        let work = self.target.run(self.job, self.occurrence, &stop);
        tokio::pin!(work);
        let deadline = sleep(self.job.deadline);
        tokio::pin!(deadline);
        let mut renewal = interval_at(Instant::now() + RENEWAL, RENEWAL);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held = Instant::now();
        let mut stopped = None;
        let outcome = loop {
            let reason = tokio::select! {
                outcome = &mut work => break outcome,
                () = &mut deadline, if stopped.is_none() => StopReason::Deadline,
                () = self.replaced.cancelled(), if stopped.is_none() => StopReason::Replaced,
                _ = renewal.tick(), if stopped != Some(StopReason::Lost) => {
                    if self.renew(&mut held).await {
                        continue;
                    }
                    StopReason::Lost
                }
            };
            stopped = Some(reason);
            stop.cancel();
        };
        self.end(outcome, stopped, now())
    }

    /// Extends the claim. `false` if it is another's, or may be by now.
    async fn renew(&self, held: &mut Instant) -> bool {
        let asked = Instant::now();
        match self.schedule.renew(&self.occurrence.handle(), LEASE).await {
            Ok(true) => {
                *held = asked;
                true
            }
            Ok(false) => false,
            Err(error) => {
                let error = talon_error_chain::error_chain(&error);
                tracing::warn!(job = %self.job.id, error, "the claim of a run cannot be renewed");
                held.elapsed() < LEASE
            }
        }
    }

    fn end(&self, outcome: RunOutcome, stopped: Option<StopReason>, now: ScheduleTime) -> Option<RunEnd> {
        let (reason, retryable) = match (outcome, stopped) {
            (RunOutcome::Lost, _) | (_, Some(StopReason::Lost)) => return None,
            // It may have come to its own end in the last moment.
            (RunOutcome::Done(answer), _) => return Some(RunEnd::Done(answer.kept)),
            (RunOutcome::Interrupted, None) => return Some(RunEnd::Released),
            (_, Some(StopReason::Deadline)) => {
                let deadline = talon_agent_settings::milliseconds(self.job.deadline);
                (format!("it took longer than its deadline of {deadline} ms"), true)
            }
            (_, Some(StopReason::Replaced)) => ("a later run replaced it".to_owned(), false),
            (RunOutcome::Failed { reason, retryable }, None) => (reason, retryable),
        };
        let note = talon_sanitize::truncate(&reason.replace('\0', ""), MAX_NOTE_BYTES - '…'.len_utf8(), "…")
            .into_owned();
        let failed = self.occurrence.attempt;
        if retryable && failed <= self.job.retries {
            let at = now.checked_add(self.job.retry_wait(failed)).unwrap_or(now);
            return Some(RunEnd::Retry { note, at: to_store(at) });
        }
        Some(RunEnd::Failed(note))
    }
}

/// Stores how a run ended. What is not stored is found out again when its claim has expired.
pub(super) async fn store_end(schedule: &dyn Schedule, run: &RunHandle, end: RunEnd, now: ScheduleTime) {
    let job = &run.job;
    match (schedule.end(run, end.clone(), to_store(now)).await, end) {
        (Ok(true), RunEnd::Done(_)) => tracing::info!(job, "a scheduled job ran"),
        (Ok(true), RunEnd::Failed(reason)) => tracing::warn!(job, reason, "a scheduled job failed"),
        (Ok(true), RunEnd::Retry { note, .. }) => {
            tracing::warn!(job, reason = note, "a scheduled job failed and is tried again")
        }
        (Ok(true), RunEnd::Released) => {
            tracing::info!(job, "a scheduled job is interrupted and goes on later")
        }
        (Ok(false), _) => tracing::warn!(job, "a scheduled job ended here, and another has claimed it"),
        (Err(error), _) => {
            let error = talon_error_chain::error_chain(&error);
            tracing::error!(job, error, "the end of a scheduled job cannot be stored; it is found out again");
        }
    }
}
