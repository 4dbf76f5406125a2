use std::fs::File;
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// A day, for which an observation is kept.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn observation(id: usize) -> Observation {
    Observation { id: id.to_string(), ..Observation::default() }
}

fn spooled(directory: &Path) -> Queue {
    let (spool, rest) = Spool::open(directory, 0).unwrap();
    Queue::spooled(spool, rest, Notices::default())
}

/// What a watcher finds that is started after this one was killed: the ids, and how many were dropped.
fn after_a_kill(queue: Queue, directory: &Path) -> (Vec<String>, u64) {
    drop(queue);
    let (_, rest) = Spool::open(directory, 0).unwrap();
    (rest.observations.into_iter().map(|seen| seen.id).collect(), rest.dropped)
}

/// Adds one while no record can be appended to the file, as on a disk that is full for a moment.
fn push_unwritten(queue: &Queue, observation: Observation, directory: &Path) {
    let read_only = File::open(directory.join("observations")).unwrap();
    let exchange = |file: File| queue.lock().spool.as_mut().unwrap().exchange_file(file);
    let file = exchange(read_only);
    queue.push(observation);
    exchange(file);
}

// Promises: SHADOW-38
#[test]
fn after_a_write_that_failed_once_the_file_has_what_waits() {
    let dir = tempfile::tempdir().unwrap();
    let queue = spooled(dir.path());
    queue.push(observation(0));
    push_unwritten(&queue, observation(1), dir.path());
    assert!(!queue.notices.once(UNWRITTEN, "no text"), "it was said");
    queue.push(observation(2));
    let (batch, _) = queue.batch(0);
    // The agent has two of them; one of these two was not in the file.
    queue.sent(&batch[..2], 0);
    assert_eq!(after_a_kill(queue, dir.path()), (vec!["2".to_owned()], 0));
}

/// Not even whole: what was there before is there, until it can be.
// Promises: SHADOW-38
#[test]
fn a_file_that_cannot_be_written_anew_is_as_it_was_until_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let queue = spooled(dir.path());
    queue.push(observation(0));
    push_unwritten(&queue, observation(1), dir.path());
    let in_the_way = dir.path().join("observations.new");
    std::fs::create_dir(&in_the_way).unwrap();
    queue.push(observation(2));
    let before = std::fs::read(dir.path().join("observations")).unwrap();
    queue.batch(0);
    assert_eq!(std::fs::read(dir.path().join("observations")).unwrap(), before);
    std::fs::remove_dir(&in_the_way).unwrap();
    // Nothing else happens but that the agent is asked again.
    queue.batch(0);
    let all = ["0", "1", "2"].map(str::to_owned).to_vec();
    assert_eq!(after_a_kill(queue, dir.path()), (all, 0));
}

// Promises: SHADOW-39
#[test]
fn what_waits_for_more_than_a_day_is_dropped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let queue = spooled(dir.path());
    let now = 10 * DAY_MS;
    for (id, age) in [DAY_MS + 1, 0, 2 * DAY_MS, DAY_MS].into_iter().enumerate() {
        queue.push(Observation { occurred_unix_ms: now - age, ..observation(id) });
    }
    let (batch, dropped) = queue.batch(now);
    let ids: Vec<&str> = batch.iter().map(|seen| seen.id.as_str()).collect();
    assert_eq!((ids, dropped), (vec!["1", "3"], 2));
    assert!(!queue.notices.once(OLD, "no text"), "it was said");
    assert_eq!(queue.batch(now).1, 2, "each is counted once");
    let left = ["1", "3"].map(str::to_owned).to_vec();
    assert_eq!(after_a_kill(queue, dir.path()), (left, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The same holds over a kill at any moment, and after a write that failed.
    // Promises: SHADOW-38
    #[test]
    fn over_a_kill_every_observation_is_accounted_for(steps in prop::collection::vec((1usize..200, any::<bool>(), any::<bool>()), 1..6)) {
        let dir = tempfile::tempdir().unwrap();
        let (mut queue, mut pushed) = (spooled(dir.path()), 0);
        for (count, fails, acknowledged) in steps {
            if fails {
                push_unwritten(&queue, observation(pushed), dir.path());
                pushed += 1;
            }
            for _ in 0..count {
                queue.push(observation(pushed));
                pushed += 1;
            }
            if acknowledged {
                let (batch, dropped) = queue.batch(0);
                queue.sent(&batch, dropped);
            }
            let before = queue.lock();
            let (observations, dropped) = (before.observations.clone(), before.dropped);
            drop(before);
            drop(queue);
            queue = spooled(dir.path());
            let after = queue.lock();
            prop_assert_eq!((&after.observations, after.dropped), (&observations, dropped));
            drop(after);
        }
    }

    /// Whatever happens in which order: each one is sent, waits, or was counted as dropped.
    // Promises: SHADOW-77
    #[test]
    fn every_observation_is_accounted_for(steps in prop::collection::vec((0usize..400, any::<bool>()), 1..20)) {
        let queue = Queue::default();
        let (mut pushed, mut sent, mut told) = (0, 0, 0);
        for (count, acknowledged) in steps {
            let (batch, dropped) = queue.batch(0);
            for _ in 0..count {
                queue.push(observation(pushed));
                pushed += 1;
            }
            prop_assert!(queue.len() <= OBSERVATIONS);
            if acknowledged {
                let before = queue.len();
                queue.sent(&batch, dropped);
                sent += before - queue.len();
                told += dropped;
            }
        }
        let (_, dropped) = queue.batch(0);
        prop_assert_eq!(sent as u64 + queue.len() as u64 + told + dropped, pushed as u64);
    }
}
