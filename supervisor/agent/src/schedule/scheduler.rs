//! Looks at the clock and the store, and begins what is due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use talon_event_bus::{EventBus, Payload, Subject};
use talon_schedule::{Decision, Timestamp as ScheduleTime, decide, wait};
use talon_store::{
    Claim, Error, JobTiming, Occurrence, OccurrenceState, Plan, RunEnd, Schedule, ScheduledJob,
    limits::MAX_PLANNED,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use ulid::Ulid;

use super::perform::{LEASE, Performance, store_end};
use super::plan::{is_news, plan};
use super::steps::{Key, Situation, Step, steps};
use super::target::JobTarget;
use super::timestamps::{from_store, now, to_store};
use super::update;
use crate::jobs::{JobTable, Jobs, JobsStatus};

/// The longest time between two looks while there are jobs: a clock that is set, or a supervisor on the same
/// database that ends, is noticed after it.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The time until another look after one that failed.
const RETRY_WAIT: Duration = Duration::from_secs(5);
/// The most unfinished occurrences of one look; the others are looked at when some of these are finished.
const MAX_LOOKED_AT: u32 = 2000;
/// The finished occurrences of a job that are kept.
const KEPT: u32 = 200;
/// How often old occurrences are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3600);

/// Runs the jobs of one agent.
pub(crate) struct Scheduler {
    jobs: Arc<JobTable>,
    schedule: Arc<dyn Schedule>,
    target: Arc<dyn JobTarget>,
    /// By what other supervisors know this process.
    holder: String,
    /// What runs here, each with the token that replaces it.
    runs: Mutex<BTreeMap<Key, CancellationToken>>,
    tasks: TaskTracker,
    failures: OnceLock<FailureObserver>,
    bus: OnceLock<EventBus>,
}

/// Learns of each run that failed and is not tried again: its job, its planned time, and the reason.
pub(crate) type FailureObserver = Box<dyn Fn(&str, &str, &str) + Send + Sync>;

impl Scheduler {
    pub(crate) fn new(
        jobs: Arc<JobTable>,
        schedule: Arc<dyn Schedule>,
        target: Arc<dyn JobTarget>,
    ) -> Arc<Self> {
        let (holder, runs, tasks) = (Ulid::generate().to_string(), Mutex::default(), TaskTracker::new());
        let (failures, bus) = (OnceLock::new(), OnceLock::new());
        Arc::new(Self { jobs, schedule, target, holder, runs, tasks, failures, bus })
    }

    /// Has the event bus be told of runs from now on.
    pub(crate) fn emit_on(&self, bus: EventBus) {
        let _first_stays = self.bus.set(bus);
    }

    /// Has an observer learn of failures from now on. The first one stays.
    pub(crate) fn observe_failures(&self, observer: FailureObserver) {
        let _first_stays = self.failures.set(observer);
    }

    /// Runs jobs until `ending`, and returns when no run is left: those that were interrupted have given their
    /// claims back.
    pub(crate) async fn run(self: Arc<Self>, ending: CancellationToken) {
        // Where this process has the store alone, nobody runs anything any more.
        if let Err(error) = self.schedule.expire_leases().await {
            tracing::warn!(
                error = talon_error_chain::error_chain(&error),
                "old claims of runs cannot be ended"
            );
        }
        let mut pruning = tokio::time::interval(PRUNE_INTERVAL);
        loop {
            let next = match self.tick(now()).await {
                Ok(next) => next,
                Err(error) => {
                    let error = talon_error_chain::error_chain(&error);
                    tracing::warn!(
                        error,
                        "the schedule cannot be looked at; it is tried again in {RETRY_WAIT:?}"
                    );
                    Some(RETRY_WAIT)
                }
            };
            let next = async {
                match next {
                    Some(next) => tokio::time::sleep(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = ending.cancelled() => break,
                () = next => {}
                () = self.jobs.woken() => {}
                _ = pruning.tick() => self.prune().await,
            }
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Looks once: stores what is planned by `now`, and begins what is due. Returns how long until the next
    /// look; `None` without jobs.
    pub(super) async fn tick(self: &Arc<Self>, now: ScheduleTime) -> Result<Option<Duration>, Error> {
        let jobs = self.jobs.get();
        let known = self.known_jobs(&jobs, now).await?;
        let resting: BTreeSet<String> = known
            .iter()
            .filter(|stored| stored.paused || jobs.get(&stored.job).is_some_and(|job| job.paused))
            .map(|stored| stored.job.clone())
            .collect();
        let unfinished = self.schedule.unfinished(MAX_LOOKED_AT).await?;
        let (news, mut next) = self.decide_all(&jobs, &known, &resting, &unfinished, now).await?;
        let unfinished = if news { self.schedule.unfinished(MAX_LOOKED_AT).await? } else { unfinished };
        if jobs.is_empty() && unfinished.is_empty() {
            self.jobs.set_status(None);
            return Ok(None);
        }
        let running_here: BTreeSet<Key> = self.runs.lock().keys().cloned().collect();
        let situation = Situation {
            jobs: &jobs,
            resting: &resting,
            unfinished: &unfinished,
            running_here: &running_here,
            now: to_store(now),
        };
        let (steps, later) = steps(&situation);
        let claimed = steps.iter().filter(|step| matches!(step, Step::Claim(_))).count();
        for step in steps {
            self.step(&jobs, step, now).await?;
        }
        let is_planned = |occurrence: &&Occurrence| occurrence.state == OccurrenceState::Planned;
        self.jobs.set_status(Some(JobsStatus {
            jobs: jobs.len(),
            paused: resting.len(),
            running: self.runs.lock().len(),
            waiting: unfinished.iter().filter(is_planned).count().saturating_sub(claimed),
            next,
        }));
        let later = later.map(from_store);
        next = [next, later].into_iter().flatten().min();
        Ok(Some(wait(now, next, MAX_WAIT)))
    }

    /// The stored jobs, after the store was told of changed ones.
    async fn known_jobs(&self, jobs: &Jobs, now: ScheduleTime) -> Result<Vec<ScheduledJob>, Error> {
        if !self.jobs.take_changed() {
            return if jobs.is_empty() { Ok(Vec::new()) } else { self.schedule.jobs().await };
        }
        let timings = jobs
            .values()
            .map(|job| JobTiming { job: job.id.to_string(), timing: job.timing_digest() })
            .collect();
        let known = self.schedule.set_jobs(timings, to_store(now)).await;
        let known = known.inspect_err(|_| self.jobs.set_changed())?;
        self.jobs.set_stored();
        Ok(known)
    }

    /// Decides about all jobs. Returns whether there are new occurrences, and when the next time is.
    async fn decide_all(
        &self,
        jobs: &Jobs,
        known: &[ScheduledJob],
        resting: &BTreeSet<String>,
        unfinished: &[Occurrence],
        now: ScheduleTime,
    ) -> Result<(bool, Option<ScheduleTime>), Error> {
        let (mut news, mut next) = (false, None);
        for stored in known.iter().filter(|stored| !resting.contains(&stored.job)) {
            let Some(job) = jobs.get(&stored.job) else { continue };
            let decision = decide(job, from_store(stored.progress), now);
            next = [next, decision.next].into_iter().flatten().min();
            if !is_news(&decision, stored.progress) {
                continue;
            }
            let own: Vec<&Occurrence> =
                unfinished.iter().filter(|occurrence| occurrence.job == stored.job).collect();
            self.log_missed(&stored.job, &decision);
            news |= self.store_plan(plan(job, &decision, stored.progress, &own)).await?;
        }
        Ok((news, next))
    }

    /// Stores a plan in pieces that the store takes, the one that moves the job on last.
    async fn store_plan(&self, mut plan: Plan) -> Result<bool, Error> {
        while plan.occurrences.len() > MAX_PLANNED {
            let occurrences = plan.occurrences.drain(..MAX_PLANNED).collect();
            let piece = Plan { job: plan.job.clone(), from: plan.from, to: plan.from, occurrences };
            if !self.schedule.plan(piece).await? {
                return Ok(false);
            }
        }
        self.schedule.plan(plan).await
    }

    fn log_missed(&self, job: &str, decision: &Decision) {
        let missed = decision.missed.len() as u64 + decision.unrecorded;
        if missed > 0 {
            let late = decision.due.iter().filter(|due| due.late).count();
            tracing::warn!(job, missed, late, "planned times passed while nothing could run");
        }
    }

    async fn step(self: &Arc<Self>, jobs: &Jobs, step: Step, now: ScheduleTime) -> Result<(), Error> {
        match step {
            Step::Miss((job, planned_at), note) => {
                self.schedule.miss(&job, planned_at, note).await?;
            }
            Step::Cancel(key) => {
                if let Some(replaced) = self.runs.lock().get(&key) {
                    replaced.cancel();
                }
            }
            Step::Claim(key) => {
                let Some(job) = jobs.get(&key.0).cloned() else { return Ok(()) };
                if let Some(claimed) = self.claim(&key, now).await? {
                    self.begin(key, job, claimed);
                }
            }
            Step::Abandon(key) => {
                if let Some(claimed) = self.claim(&key, now).await? {
                    let end = RunEnd::Failed("the job is not configured any more".to_owned());
                    self.emit(update::ended(&claimed, &end));
                    store_end(&*self.schedule, &claimed.handle(), end, now).await;
                }
            }
        }
        Ok(())
    }

    async fn claim(&self, (job, planned_at): &Key, now: ScheduleTime) -> Result<Option<Occurrence>, Error> {
        let (job, holder) = (job.clone(), self.holder.clone());
        let claim = Claim { job, planned_at: *planned_at, holder, lease: LEASE, now: to_store(now) };
        self.schedule.claim(claim).await
    }

    /// Runs a claimed occurrence in a task of its own.
    fn begin(self: &Arc<Self>, key: Key, job: Arc<talon_schedule::Job>, occurrence: Occurrence) {
        let replaced = CancellationToken::new();
        self.runs.lock().insert(key.clone(), replaced.clone());
        let scheduler = Arc::clone(self);
        self.tasks.spawn(async move {
            scheduler.emit(update::started(&occurrence));
            let performance = Performance {
                schedule: &*scheduler.schedule,
                target: &*scheduler.target,
                job: &job,
                occurrence: &occurrence,
                replaced: &replaced,
            };
            let end = performance.run(now).await;
            if let Some(end) = end {
                scheduler.report_failure(&occurrence, &end);
                scheduler.emit(update::ended(&occurrence, &end));
                store_end(&*scheduler.schedule, &occurrence.handle(), end, now()).await;
            }
            scheduler.runs.lock().remove(&key);
            // Another may wait for its end.
            scheduler.jobs.wake();
        });
    }

    /// Jobs belong to nobody.
    fn emit(&self, payload: Payload) {
        if let Some(bus) = self.bus.get() {
            bus.emit(Subject::NOBODY, payload);
        }
    }

    fn report_failure(&self, occurrence: &Occurrence, end: &RunEnd) {
        if let (RunEnd::Failed(reason), Some(observer)) = (end, self.failures.get()) {
            observer(&occurrence.job, &occurrence.planned_at.to_string(), reason);
        }
    }

    async fn prune(&self) {
        match self.schedule.prune(KEPT).await {
            Ok(0) => {}
            Ok(deleted) => tracing::info!(deleted, "old occurrences of jobs are deleted"),
            Err(error) => {
                tracing::warn!(
                    error = talon_error_chain::error_chain(&error),
                    "old occurrences cannot be deleted"
                );
            }
        }
    }
}
