//! The schedule.

use std::collections::BTreeSet;
use std::time::Duration;

use talon_store::{
    Claim, JobTiming, NewOccurrence, Occurrence, OccurrenceKind, OccurrenceState, PageRequest, Plan, RunEnd,
    RunResult, Store, Timestamp,
};

use talon_store::limits::{MAX_RESULT_JSON_BYTES, MAX_RESULT_TEXT_BYTES};

use crate::support::{Fixture, cases};

cases![
    a_new_job_begins_now_and_a_changed_one_anew,
    a_decision_is_stored_once,
    an_occurrence_exists_once,
    a_claim_is_for_one,
    a_job_runs_once_at_a_time,
    a_lost_claim_writes_nothing,
    a_lease_that_expired_is_claimed_again,
    a_run_ends_in_one_way,
    what_an_action_answered_is_kept_and_bounded,
    a_planned_one_is_missed_and_stays_so,
    a_rest_moves_the_job_on,
    a_history_is_paged_from_the_latest,
    old_occurrences_are_deleted_and_others_stay,
    an_exported_occurrence_is_imported_once,
    what_no_occurrence_can_be_is_refused,
    of_many_that_decide_and_claim_at_once_one_does,
];

const LEASE: Duration = Duration::from_secs(600);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1000)
}

fn timing(job: &str, timing: &str) -> JobTiming {
    JobTiming { job: job.to_owned(), timing: timing.to_owned() }
}

fn plan(job: &str, from: i64, to: i64, planned: &[i64]) -> Plan {
    let new = |seconds: &i64| NewOccurrence {
        planned_at: at(*seconds),
        begins_at: at(*seconds),
        kind: OccurrenceKind::Planned,
        missed: None,
    };
    Plan { job: job.to_owned(), from: at(from), to: at(to), occurrences: planned.iter().map(new).collect() }
}

fn claim(job: &str, planned: i64, holder: &str, lease: Duration) -> Claim {
    let (job, holder) = (job.to_owned(), holder.to_owned());
    Claim { job, planned_at: at(planned), holder, lease, now: Timestamp::now() }
}

/// A job with these planned occurrences.
async fn planned(store: &Store, job: &str, times: &[i64]) {
    let schedule = store.schedule();
    schedule.set_jobs(vec![timing(job, "t")], at(0)).await.unwrap();
    assert!(schedule.plan(plan(job, 0, 1000, times)).await.unwrap());
}

async fn one(store: &Store, job: &str, planned: i64) -> Occurrence {
    store.schedule().get(job, at(planned)).await.unwrap().unwrap()
}

async fn a_new_job_begins_now_and_a_changed_one_anew(Fixture { store, .. }: Fixture) {
    let schedule = store.schedule();
    let jobs = schedule.set_jobs(vec![timing("b", "1"), timing("a", "1")], at(10)).await.unwrap();
    let progress: Vec<_> = jobs.iter().map(|job| (job.job.as_str(), job.progress, job.paused)).collect();
    assert_eq!(progress, [("a", at(10), false), ("b", at(10), false)]);
    let jobs = schedule.set_jobs(vec![timing("a", "1"), timing("b", "2")], at(20)).await.unwrap();
    assert_eq!((jobs[0].progress, jobs[1].progress), (at(10), at(20)));
    let jobs = schedule.set_jobs(vec![timing("b", "2")], at(30)).await.unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(schedule.jobs().await.unwrap(), jobs);
    // One that comes back is new.
    let jobs = schedule.set_jobs(vec![timing("a", "1"), timing("b", "2")], at(40)).await.unwrap();
    assert_eq!((jobs[0].progress, jobs[1].progress), (at(40), at(20)));
    assert!(schedule.set_jobs(Vec::new(), at(50)).await.unwrap().is_empty());
}

async fn a_decision_is_stored_once(Fixture { store, .. }: Fixture) {
    let schedule = store.schedule();
    schedule.set_jobs(vec![timing("a", "t")], at(0)).await.unwrap();
    assert!(schedule.plan(plan("a", 0, 60, &[60])).await.unwrap());
    assert!(!schedule.plan(plan("a", 0, 90, &[90])).await.unwrap(), "it was decided meanwhile");
    assert!(!schedule.plan(plan("none", 0, 60, &[60])).await.unwrap());
    assert_eq!(schedule.jobs().await.unwrap()[0].progress, at(60));
    let unfinished = schedule.unfinished(100).await.unwrap();
    assert_eq!(unfinished.iter().map(|found| found.planned_at).collect::<Vec<_>>(), [at(60)]);
}

async fn an_occurrence_exists_once(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60]).await;
    let schedule = store.schedule();
    let run = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    assert!(schedule.end(&run.handle(), RunEnd::Done(None), at(70)).await.unwrap());
    // The clock was set back, and the job is decided once more.
    assert!(schedule.plan(plan("a", 1000, 1000, &[60, 120])).await.unwrap());
    assert_eq!(one(&store, "a", 60).await.state, OccurrenceState::Done);
    assert_eq!(schedule.unfinished(100).await.unwrap().len(), 1);
}

async fn a_claim_is_for_one(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60]).await;
    let schedule = store.schedule();
    let run = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!((run.state, run.attempt, run.epoch), (OccurrenceState::Running, 1, 1));
    assert_eq!(run.holder.as_deref(), Some("x"));
    assert!(run.started_at.is_some() && run.lease_until > Timestamp::now());
    assert_eq!(schedule.claim(claim("a", 60, "y", LEASE)).await.unwrap(), None);
    assert_eq!(schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap(), None);
    assert_eq!(schedule.claim(claim("a", 61, "x", LEASE)).await.unwrap(), None);
}

async fn a_job_runs_once_at_a_time(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60, 120]).await;
    let schedule = store.schedule();
    let first = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!(schedule.claim(claim("a", 120, "y", LEASE)).await.unwrap(), None);
    assert!(schedule.end(&first.handle(), RunEnd::Failed("no".into()), at(70)).await.unwrap());
    assert!(schedule.claim(claim("a", 120, "y", LEASE)).await.unwrap().is_some());
}

async fn a_lost_claim_writes_nothing(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60]).await;
    let schedule = store.schedule();
    let lost = schedule.claim(claim("a", 60, "x", Duration::ZERO)).await.unwrap().unwrap().handle();
    let run = schedule.claim(claim("a", 60, "y", LEASE)).await.unwrap().unwrap();
    assert_eq!((run.epoch, run.attempt), (2, 1), "the same attempt goes on");
    assert!(!schedule.renew(&lost, LEASE).await.unwrap());
    assert!(!schedule.set_turn(&lost, "s", 1).await.unwrap());
    assert!(!schedule.set_called(&lost, at(70)).await.unwrap());
    for end in [RunEnd::Done(None), RunEnd::Failed("x".into()), RunEnd::Released] {
        assert!(!schedule.end(&lost, end, at(70)).await.unwrap());
    }
    assert!(schedule.set_turn(&run.handle(), "s", 7).await.unwrap());
    assert!(schedule.renew(&run.handle(), LEASE).await.unwrap());
    assert!(schedule.end(&run.handle(), RunEnd::Done(None), at(70)).await.unwrap());
    assert!(!schedule.end(&run.handle(), RunEnd::Failed("x".into()), at(71)).await.unwrap());
    let done = one(&store, "a", 60).await;
    assert_eq!((done.state, done.session.as_deref(), done.turn), (OccurrenceState::Done, Some("s"), Some(7)));
    assert_eq!((done.ended_at, done.holder.as_deref()), (Some(at(70)), Some("y")));
}

async fn a_lease_that_expired_is_claimed_again(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60]).await;
    let schedule = store.schedule();
    let run = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    assert!(schedule.end(&run.handle(), RunEnd::Released, at(70)).await.unwrap());
    let again = schedule.claim(claim("a", 60, "y", LEASE)).await.unwrap().unwrap();
    assert_eq!((again.epoch, again.attempt, again.started_at), (2, 1, run.started_at));
    // Where one process has the store alone, a start ends all leases; otherwise they hold.
    schedule.expire_leases().await.unwrap();
    let claimed = schedule.claim(claim("a", 60, "z", LEASE)).await.unwrap();
    assert_eq!(claimed.is_some(), store.engine() == "sqlite");
}

async fn a_run_ends_in_one_way(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60]).await;
    let schedule = store.schedule();
    let run = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    schedule.set_turn(&run.handle(), "s", 1).await.unwrap();
    let retry = RunEnd::Retry { note: "no model answered".into(), at: at(120) };
    assert!(schedule.end(&run.handle(), retry, at(70)).await.unwrap());
    let waiting = one(&store, "a", 60).await;
    assert_eq!((waiting.state, waiting.begins_at, waiting.turn), (OccurrenceState::Planned, at(120), None));
    assert_eq!(waiting.note, "no model answered");
    let second = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!((second.attempt, second.epoch), (2, 2));
    assert!(schedule.end(&second.handle(), RunEnd::Failed("again".into()), at(130)).await.unwrap());
    let failed = one(&store, "a", 60).await;
    assert_eq!((failed.state, failed.note.as_str()), (OccurrenceState::Failed, "again"));
    assert_eq!(schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap(), None, "it is over");
}

async fn what_an_action_answered_is_kept_and_bounded(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60]).await;
    let schedule = store.schedule();
    let run = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!((run.called_at, &run.result), (None, &None));
    assert!(schedule.set_called(&run.handle(), at(61)).await.unwrap());
    assert_eq!(one(&store, "a", 60).await.called_at, Some(at(61)));
    let retry = RunEnd::Retry { note: "refused".into(), at: at(120) };
    assert!(schedule.end(&run.handle(), retry, at(70)).await.unwrap());
    let second = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!(second.called_at, None, "a retry calls anew");
    assert!(schedule.set_called(&second.handle(), at(121)).await.unwrap());
    let big = |bytes| RunResult { text: "x".repeat(bytes), structured: None };
    let end = RunEnd::Done(Some(big(MAX_RESULT_TEXT_BYTES + 1)));
    assert!(schedule.end(&second.handle(), end, at(130)).await.is_err());
    let structured = serde_json::Value::String("x".repeat(MAX_RESULT_JSON_BYTES));
    let end = RunEnd::Done(Some(RunResult { text: String::new(), structured: Some(structured) }));
    assert!(schedule.end(&second.handle(), end, at(130)).await.is_err());
    let end = RunEnd::Done(Some(big(MAX_RESULT_TEXT_BYTES)));
    assert!(schedule.end(&second.handle(), end, at(130)).await.unwrap());
    let done = one(&store, "a", 60).await;
    assert_eq!((done.result, done.called_at), (Some(big(MAX_RESULT_TEXT_BYTES)), Some(at(121))));
}

async fn a_planned_one_is_missed_and_stays_so(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60, 120]).await;
    let schedule = store.schedule();
    assert!(schedule.miss("a", at(60), "the job still ran").await.unwrap());
    assert!(!schedule.miss("a", at(60), "again").await.unwrap());
    assert_eq!(schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap(), None);
    let missed = one(&store, "a", 60).await;
    assert_eq!((missed.state, missed.note.as_str()), (OccurrenceState::Missed, "the job still ran"));
    schedule.claim(claim("a", 120, "x", LEASE)).await.unwrap().unwrap();
    assert!(!schedule.miss("a", at(120), "too late").await.unwrap());
}

async fn a_rest_moves_the_job_on(Fixture { store, .. }: Fixture) {
    let schedule = store.schedule();
    schedule.set_jobs(vec![timing("a", "t")], at(0)).await.unwrap();
    assert!(schedule.set_paused("a", true, at(10)).await.unwrap());
    assert!(!schedule.set_paused("a", true, at(11)).await.unwrap());
    assert!(!schedule.set_paused("none", true, at(11)).await.unwrap());
    // It rests over a restart.
    assert!(schedule.set_jobs(vec![timing("a", "t")], at(20)).await.unwrap()[0].paused);
    assert!(schedule.set_paused("a", false, at(500)).await.unwrap());
    let job = schedule.jobs().await.unwrap().remove(0);
    assert_eq!((job.paused, job.progress), (false, at(500)));
}

async fn a_history_is_paged_from_the_latest(Fixture { store, .. }: Fixture) {
    let schedule = store.schedule();
    schedule.set_jobs(vec![timing("a", "t"), timing("b", "t")], at(0)).await.unwrap();
    for job in ["a", "b"] {
        assert!(schedule.plan(plan(job, 0, 1000, &[10, 20, 30])).await.unwrap());
    }
    let mut found = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let got = schedule.history(None, &page).await.unwrap();
        found.extend(got.items.into_iter().map(|item| (item.planned_at, item.job)));
        let Some(next) = got.next else { break };
        page = PageRequest::after(talon_store::PageToken::parse(&next.to_string()).unwrap(), 2);
    }
    let expected: Vec<_> =
        [30, 20, 10].into_iter().flat_map(|time| ["b", "a"].map(|job| (at(time), job.to_owned()))).collect();
    assert_eq!(found, expected);
    let of_one = schedule.history(Some("b"), &PageRequest::default()).await.unwrap();
    assert!(of_one.items.iter().all(|item| item.job == "b") && of_one.items.len() == 3);
}

async fn old_occurrences_are_deleted_and_others_stay(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[10, 20, 30, 40, 50]).await;
    let schedule = store.schedule();
    for seconds in [10, 20, 40] {
        assert!(schedule.miss("a", at(seconds), "").await.unwrap());
    }
    schedule.claim(claim("a", 30, "x", LEASE)).await.unwrap().unwrap();
    assert_eq!(schedule.prune(1).await.unwrap(), 2);
    let left: BTreeSet<_> = schedule
        .history(Some("a"), &PageRequest::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|item| item.planned_at)
        .collect();
    assert_eq!(left, BTreeSet::from([at(30), at(40), at(50)]));
    assert_eq!(schedule.prune(1).await.unwrap(), 0);
}

async fn an_exported_occurrence_is_imported_once(Fixture { store, .. }: Fixture) {
    planned(&store, "a", &[60]).await;
    let schedule = store.schedule();
    let run = schedule.claim(claim("a", 60, "x", LEASE)).await.unwrap().unwrap();
    schedule.set_turn(&run.handle(), "s", 3).await.unwrap();
    let result =
        RunResult { text: "sent".into(), structured: Some(serde_json::json!({ "n": 1, "to": ["日本"] })) };
    schedule.set_called(&run.handle(), at(65)).await.unwrap();
    schedule.end(&run.handle(), RunEnd::Done(Some(result)), at(70)).await.unwrap();
    let mut exported = one(&store, "a", 60).await;
    let text = serde_json::to_string(&exported).unwrap();
    assert_eq!(serde_json::from_str::<Occurrence>(&text).unwrap(), exported);
    assert!(!schedule.import(exported.clone()).await.unwrap());
    exported.job = "b".into();
    assert!(schedule.import(exported.clone()).await.unwrap());
    exported.lease_until = Timestamp::from_millis(0);
    assert_eq!(one(&store, "b", 60).await, exported);
}

async fn what_no_occurrence_can_be_is_refused(Fixture { store, .. }: Fixture) {
    let schedule = store.schedule();
    for job in ["", "a\0b", &"x".repeat(10_000)] {
        assert!(schedule.set_jobs(vec![timing(job, "t")], at(0)).await.is_err(), "{job:?}");
        assert!(schedule.plan(plan(job, 0, 1, &[])).await.is_err(), "{job:?}");
    }
    let many: Vec<i64> = (0..2000).collect();
    assert!(schedule.plan(plan("a", 0, 1, &many)).await.is_err());
    assert!(schedule.miss("a", at(0), &"x".repeat(100_000)).await.is_err());
    assert!(schedule.miss("a", at(0), "\0").await.is_err());
}

async fn of_many_that_decide_and_claim_at_once_one_does(Fixture { store, .. }: Fixture) {
    let schedule = store.schedule();
    schedule.set_jobs(vec![timing("a", "t")], at(0)).await.unwrap();
    let decide = |holder: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            let schedule = store.schedule();
            let decided = schedule.plan(plan("a", 0, 90, &[60, 90])).await.unwrap();
            let first = schedule.claim(claim("a", 60, &format!("h{holder}"), LEASE)).await.unwrap();
            let second = schedule.claim(claim("a", 90, &format!("h{holder}"), LEASE)).await.unwrap();
            (decided, usize::from(first.is_some()) + usize::from(second.is_some()))
        })
    };
    let (mut decided, mut claimed) = (0, 0);
    for one in (0..8).map(decide).collect::<Vec<_>>() {
        let (did, got) = one.await.unwrap();
        decided += usize::from(did);
        claimed += got;
    }
    assert_eq!((decided, claimed), (1, 1));
}
