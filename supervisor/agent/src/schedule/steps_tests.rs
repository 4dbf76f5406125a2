use std::sync::Arc;

use proptest::prelude::*;
use talon_schedule::{MissedPolicy, Recurrence, Target};

use super::*;
use crate::schedule::fixture;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn job(id: &str, overlap: Overlap) -> Arc<Job> {
    Arc::new(Job {
        id: id.parse().expect("an id"),
        recurrence: Recurrence::Every("1m".parse().expect("an interval")),
        jitter: std::time::Duration::ZERO,
        missed: MissedPolicy::Once,
        overlap,
        retries: 0,
        retry_after: std::time::Duration::from_secs(60),
        deadline: std::time::Duration::from_secs(600),
        paused: false,
        accepted: false,
        deliver: None,
        target: Target::Ask { text: "x".to_owned(), session: None, budget: None },
    })
}

fn jobs(overlap: Overlap) -> Jobs {
    ["a", "b"].into_iter().map(|id| (id.to_owned(), job(id, overlap))).collect()
}

fn occurrence(job: &str, planned: i64, state: OccurrenceState) -> Occurrence {
    Occurrence { state, ..fixture::occurrence(job, planned * 1000) }
}

fn planned(job: &str, planned: i64) -> Occurrence {
    occurrence(job, planned, OccurrenceState::Planned)
}

fn running(job: &str, planned: i64, lease: i64) -> Occurrence {
    Occurrence { lease_until: at(lease), ..occurrence(job, planned, OccurrenceState::Running) }
}

fn key(job: &str, planned: i64) -> Key {
    (job.to_owned(), at(planned))
}

fn of(jobs: &Jobs, unfinished: &[Occurrence], here: &[Key], now: i64) -> (Vec<Step>, Option<Timestamp>) {
    steps(&Situation {
        jobs,
        resting: &BTreeSet::new(),
        unfinished,
        running_here: &here.iter().cloned().collect(),
        now: at(now),
    })
}

#[test]
fn what_has_begun_is_claimed_and_the_rest_waited_for() {
    let jobs = jobs(Overlap::Skip);
    let (found, next) = of(&jobs, &[planned("a", 60), planned("b", 90)], &[], 60);
    assert_eq!(found, [Step::Claim(key("a", 60))]);
    assert_eq!(next, Some(at(90)));
    assert_eq!(of(&jobs, &[], &[], 60), (vec![], None));
}

#[test]
fn of_one_job_one_runs_at_a_time() {
    let jobs = jobs(Overlap::Queue);
    let two = [planned("a", 60), planned("a", 120)];
    assert_eq!(of(&jobs, &two, &[], 130).0, [Step::Claim(key("a", 60))]);
    let one_runs = [running("a", 60, 200), planned("a", 120)];
    assert!(of(&jobs, &one_runs, &[key("a", 60)], 130).0.is_empty());
    // Another's is waited for, as long as its claim holds.
    assert_eq!(of(&jobs, &one_runs, &[], 130), (vec![], Some(at(200))));
    assert_eq!(of(&jobs, &one_runs, &[], 200).0, [Step::Claim(key("a", 60))]);
}

#[test]
fn a_later_run_replaces_what_waits_and_what_runs_here() {
    let jobs = jobs(Overlap::Replace);
    let three = [running("a", 60, 200), planned("a", 120), planned("a", 180)];
    let (found, _) = of(&jobs, &three, &[key("a", 60)], 180);
    assert_eq!(found, [Step::Miss(key("a", 120), "a later run replaced it"), Step::Cancel(key("a", 60))]);
    // A retry of the same run replaces nothing.
    let retried = [running("a", 180, 200), planned("a", 120)];
    assert!(of(&jobs, &retried, &[key("a", 180)], 190).0.is_empty());
}

#[test]
fn a_job_that_rests_runs_by_hand_alone() {
    let jobs = jobs(Overlap::Skip);
    let manual = Occurrence { kind: OccurrenceKind::Manual, ..planned("a", 70) };
    let unfinished = [planned("a", 60), manual, planned("b", 60)];
    let (found, _) = steps(&Situation {
        jobs: &jobs,
        resting: &BTreeSet::from(["a".to_owned()]),
        unfinished: &unfinished,
        running_here: &BTreeSet::new(),
        now: at(100),
    });
    assert_eq!(found, [Step::Claim(key("a", 70)), Step::Claim(key("b", 60))]);
}

#[test]
fn what_is_left_of_a_job_that_is_gone_ends() {
    let left = [planned("gone", 60), running("gone", 30, 200)];
    let missed = Step::Miss(key("gone", 60), "the job is not configured any more");
    assert_eq!(of(&Jobs::new(), &left, &[], 100), (vec![missed.clone()], Some(at(200))));
    assert_eq!(of(&Jobs::new(), &left, &[], 200).0, [missed, Step::Abandon(key("gone", 30))]);
}

#[test]
fn so_many_run_at_once() {
    let jobs: Jobs =
        (0..40).map(|n| format!("j{n:02}")).map(|id| (id.clone(), job(&id, Overlap::Skip))).collect();
    let all: Vec<Occurrence> = jobs.keys().map(|id| planned(id, 60)).collect();
    assert_eq!(of(&jobs, &all, &[], 60).0.len(), MAX_RUNS);
    let here: Vec<Key> = (0..10).map(|n| key(&format!("x{n}"), 60)).collect();
    assert_eq!(of(&jobs, &all, &here, 60).0.len(), MAX_RUNS - 10);
}

proptest! {
    /// Whatever is unfinished: a job has one claim at most, none beside a run that goes on, and each occurrence
    /// one step.
    #[test]
    fn no_job_is_begun_twice(
        rows in prop::collection::btree_map((0_usize..3, 0_i64..10), (0_u8..4, any::<bool>()), 0..12),
        overlap in prop::sample::select(vec![Overlap::Skip, Overlap::Queue, Overlap::Replace]),
        now in 0_i64..12,
    ) {
        let jobs = jobs(overlap);
        let mut has_running = BTreeSet::new();
        let (mut unfinished, mut here) = (Vec::new(), Vec::new());
        for ((job, planned_at), (kind, is_here)) in rows {
            let job = ["a", "b", "gone"][job];
            if kind == 0 && has_running.insert(job) {
                unfinished.push(running(job, planned_at, planned_at + 3));
                here.extend(is_here.then(|| key(job, planned_at)));
            } else {
                unfinished.push(planned(job, planned_at));
            }
        }
        let (found, next) = of(&jobs, &unfinished, &here, now);
        let mut seen = BTreeSet::new();
        for step in &found {
            let (Step::Claim(key) | Step::Cancel(key) | Step::Miss(key, _) | Step::Abandon(key)) = step;
            prop_assert!(seen.insert(key.clone()), "{:?} twice", key);
            let row = unfinished.iter().find(|row| super::key(row) == *key).expect("it is there");
            match step {
                Step::Claim(_) | Step::Abandon(_) => {
                    let free = row.state == OccurrenceState::Planned && row.begins_at <= at(now)
                        || row.lease_until <= at(now);
                    prop_assert!(free && !here.contains(key));
                }
                Step::Cancel(_) => prop_assert!(here.contains(key)),
                Step::Miss(..) => prop_assert!(row.state == OccurrenceState::Planned),
            }
        }
        for job in ["a", "b", "gone"] {
            let claims = found.iter().filter(|step| matches!(step, Step::Claim((id, _)) if id == job)).count();
            let goes_on = unfinished.iter().any(|row| row.job == job && here.contains(&super::key(row)));
            prop_assert!(claims <= usize::from(!goes_on));
        }
        prop_assert!(next.is_none_or(|next| next > at(now)));
    }
}
