//! The scheduler on a real store, with a target of the test's and times that the test sets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use talon_schedule::{Job, ScheduleEntry, Timestamp as ScheduleTime};
use talon_store::{Engine, Occurrence, OccurrenceState, PageRequest, Store, StoreOptions};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::scheduler::Scheduler;
use super::target::{JobTarget, RunAnswer, RunOutcome};
use crate::jobs::JobTable;

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run that waits for the test to end it.
#[derive(Debug)]
struct Begun {
    job: String,
    attempt: u32,
    end: tokio::sync::oneshot::Sender<RunOutcome>,
}

/// Tells the test of each run.
struct Told {
    begun: mpsc::UnboundedSender<Begun>,
}

#[async_trait]
impl JobTarget for Told {
    async fn run(&self, job: &Job, occurrence: &Occurrence, stop: &CancellationToken) -> RunOutcome {
        let (end, ended) = tokio::sync::oneshot::channel();
        let (job, attempt) = (job.id.to_string(), occurrence.attempt);
        self.begun.send(Begun { job, attempt, end }).expect("the test listens");
        tokio::select! {
            outcome = ended => outcome.unwrap_or(RunOutcome::Interrupted),
            () = stop.cancelled() => RunOutcome::failed("it was stopped"),
        }
    }
}

struct Setting {
    _directory: tempfile::TempDir,
    path: PathBuf,
    store: Store,
    jobs: Arc<JobTable>,
    scheduler: Arc<Scheduler>,
    begun: mpsc::UnboundedReceiver<Begun>,
}

async fn store(path: &std::path::Path) -> Store {
    StoreOptions::new(Engine::Sqlite { path: path.to_owned() }).open().await.expect("a store")
}

impl Setting {
    async fn new(yaml: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("agent/agent.db");
        let jobs = Arc::<JobTable>::default();
        let (store, (scheduler, begun)) = (store(&path).await, scheduler_parts());
        let scheduler = scheduler(&jobs, &store);
        let setting = Self { _directory: directory, path, store, jobs, scheduler, begun };
        setting.configure(yaml);
        setting
    }

    fn configure(&self, yaml: &str) {
        let entries: Vec<ScheduleEntry> = serde_saphyr::from_str(yaml).expect("entries");
        self.jobs.configure(&entries);
    }

    /// As another process would, after this one was killed.
    async fn restart(&mut self) {
        self.store.close().await;
        self.store = store(&self.path).await;
        let (scheduler, begun) = scheduler_parts();
        self.scheduler = scheduler(&self.jobs, &self.store);
        self.begun = begun;
        self.store.schedule().expire_leases().await.expect("written");
        self.jobs.set_changed();
    }

    async fn tick(&self, at: &str) -> Option<Duration> {
        self.scheduler.tick(time(at)).await.expect("a tick")
    }

    async fn next_run(&mut self) -> Begun {
        tokio::time::timeout(PATIENCE, self.begun.recv()).await.expect("in time").expect("a run")
    }

    async fn history(&self) -> Vec<Occurrence> {
        let page = self.store.schedule().history(None, &PageRequest::default()).await.expect("read");
        page.items
    }

    /// The states, oldest first, once the latest but `unfinished` are over.
    async fn states(&self, unfinished: usize) -> Vec<(String, OccurrenceState)> {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let left = self.store.schedule().unfinished(1000).await.expect("read");
                if left.len() == unfinished {
                    return;
                }
                self.jobs.woken().await;
            }
        });
        waited.await.expect("in time");
        let mut all: Vec<_> = self
            .history()
            .await
            .into_iter()
            .map(|occurrence| (occurrence.planned_at.to_string(), occurrence.state))
            .collect();
        all.reverse();
        all
    }
}

type Make = Box<dyn Fn(&Arc<JobTable>, &Store) -> Arc<Scheduler>>;

fn scheduler_parts() -> (Make, mpsc::UnboundedReceiver<Begun>) {
    let (tell, begun) = mpsc::unbounded_channel();
    let target = Arc::new(Told { begun: tell });
    let make: Make = Box::new(move |jobs, store| {
        Scheduler::new(Arc::clone(jobs), store.schedule(), Arc::clone(&target) as _)
    });
    (make, begun)
}

fn time(text: &str) -> ScheduleTime {
    format!("2026-11-26T{text}Z").parse().expect("a time")
}

fn states(expected: &[(&str, OccurrenceState)]) -> Vec<(String, OccurrenceState)> {
    expected.iter().map(|(at, state)| (format!("2026-11-26T{at}:00.000Z"), *state)).collect()
}

const HOURLY: &str = "[{ id: a, cron: '0 * * * *', ask: x }]";

// Promises: EXT-37
#[tokio::test]
async fn a_planned_time_runs_once_also_over_a_restart() {
    let mut setting = Setting::new(HOURLY).await;
    setting.tick("00:30:00").await;
    let wait = setting.tick("00:59:59.500").await;
    assert_eq!(wait, Some(Duration::from_millis(500)));
    setting.tick("01:00:00").await;
    let run = setting.next_run().await;
    assert_eq!((run.job.as_str(), run.attempt), ("a", 1));
    // It is killed in the middle; the same run goes on.
    setting.restart().await;
    setting.tick("01:00:05").await;
    let again = setting.next_run().await;
    assert_eq!(again.attempt, 1);
    again.end.send(RunOutcome::Done(RunAnswer::default())).expect("it waits");
    assert_eq!(setting.states(0).await, states(&[("01:00", OccurrenceState::Done)]));
    setting.restart().await;
    setting.tick("01:00:10").await;
    assert!(setting.begun.try_recv().is_err(), "it ran already");
    assert_eq!(setting.history().await[0].epoch, 2);
}

// Promises: EXT-37
#[tokio::test]
async fn after_a_downtime_the_latest_missed_time_runs() {
    let mut setting = Setting::new(HOURLY).await;
    setting.tick("00:30:00").await;
    setting.restart().await;
    setting.tick("04:20:00").await;
    setting.next_run().await.end.send(RunOutcome::Done(RunAnswer::default())).expect("it waits");
    let missed = OccurrenceState::Missed;
    assert_eq!(
        setting.states(0).await,
        states(&[("01:00", missed), ("02:00", missed), ("03:00", missed), ("04:00", OccurrenceState::Done)])
    );
}

#[tokio::test]
async fn a_job_that_still_runs_skips_waits_or_is_replaced() {
    for (overlap, first, second) in [
        ("skip", OccurrenceState::Done, OccurrenceState::Missed),
        ("queue", OccurrenceState::Done, OccurrenceState::Done),
        ("replace", OccurrenceState::Failed, OccurrenceState::Done),
    ] {
        let mut setting =
            Setting::new(&format!("[{{ id: a, cron: '0 * * * *', overlap: {overlap}, ask: x }}]")).await;
        setting.tick("00:30:00").await;
        setting.tick("01:00:00").await;
        let one = setting.next_run().await;
        setting.tick("02:00:00").await;
        if overlap != "replace" {
            one.end.send(RunOutcome::Done(RunAnswer::default())).expect("it waits");
        }
        if overlap != "skip" {
            setting.states(1).await;
            setting.tick("02:00:01").await;
            setting.next_run().await.end.send(RunOutcome::Done(RunAnswer::default())).expect("it waits");
        }
        let expected = states(&[("01:00", first), ("02:00", second)]);
        assert_eq!(setting.states(0).await, expected, "{overlap}");
    }
}

#[tokio::test]
async fn a_failed_run_is_tried_again_as_often_as_is_written() {
    let mut setting =
        Setting::new("[{ id: a, at: '2026-11-26T01:00:00Z', retries: 1, retry_after: 10m, ask: x }]").await;
    setting.tick("00:30:00").await;
    setting.tick("01:00:00").await;
    let fail = |run: Begun| run.end.send(RunOutcome::failed("no model")).expect("it waits");
    fail(setting.next_run().await);
    setting.states(1).await;
    let waiting = tokio::time::timeout(PATIENCE, async {
        loop {
            let row = setting.history().await.remove(0);
            if row.state == OccurrenceState::Planned {
                return row;
            }
            setting.jobs.woken().await;
        }
    });
    let waiting = waiting.await.expect("in time");
    assert_eq!((waiting.attempt, waiting.note.as_str()), (1, "no model"));
    // By the real clock, which is later than the test's.
    let later = ScheduleTime::from_millisecond(waiting.begins_at.as_millis()).expect("a time");
    setting.scheduler.tick(later).await.expect("a tick");
    let second = setting.next_run().await;
    assert_eq!(second.attempt, 2);
    fail(second);
    assert_eq!(setting.states(0).await, states(&[("01:00", OccurrenceState::Failed)]));
}

#[tokio::test]
async fn a_job_that_rests_misses_nothing_and_runs_by_hand() {
    let mut setting = Setting::new(HOURLY).await;
    setting.tick("00:30:00").await;
    let schedule = setting.store.schedule();
    assert!(schedule.set_paused("a", true, super::to_store(time("00:40:00"))).await.expect("written"));
    setting.tick("02:30:00").await;
    assert!(setting.history().await.is_empty());
    assert!(schedule.set_paused("a", false, super::to_store(time("02:40:00"))).await.expect("written"));
    let wait = setting.tick("02:59:59").await;
    assert_eq!(wait, Some(Duration::from_secs(1)));
    setting.tick("03:00:00").await;
    setting.next_run().await.end.send(RunOutcome::Done(RunAnswer::default())).expect("it waits");
    assert_eq!(setting.states(0).await, states(&[("03:00", OccurrenceState::Done)]));
}

#[tokio::test]
async fn without_jobs_nothing_is_looked_at() {
    let setting = Setting::new("[]").await;
    assert_eq!(setting.tick("00:30:00").await, None);
    setting.configure(HOURLY);
    assert!(setting.tick("00:30:00").await.is_some());
}
