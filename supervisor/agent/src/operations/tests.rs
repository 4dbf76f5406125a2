use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use talon_proto::agent::Operation;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;
use tonic::{Code, Status};

use super::log::{CUT, MAX_TEXT_BYTES, QueuedOperation};
use super::{NO_ID, OperationLog, OperationOutcome, OperationRecording, RateLimit, digest, id};

/// The most requests at once.
const REQUESTS: u32 = 16;

fn operation(verb: &str, subject: &str) -> Operation {
    Operation { verb: verb.to_owned(), subject: subject.to_owned(), ..Operation::default() }
}

async fn write(queue: &mut Receiver<QueuedOperation>) -> Operation {
    let mut queued = queue.recv().await.unwrap();
    let operation = queued.take().unwrap();
    queued.set_written();
    operation
}

// Promises: AUDIT-20
#[tokio::test]
async fn who_records_waits_until_it_was_written_and_not_for_a_supervisor_that_is_gone() {
    let log = OperationLog::new(REQUESTS);
    let mut queue = log.queue().unwrap();
    assert!(log.queue().is_none(), "there is one writer");
    let mut recorded = Box::pin(log.record(operation("pause_job", "greet")));
    assert!(recorded.as_mut().now_or_never().is_none(), "nothing is written yet");
    let mut queued = queue.recv().await.unwrap();
    assert_eq!(queued.take().unwrap().verb, "pause_job");
    assert!(recorded.as_mut().now_or_never().is_none(), "it is not written yet");
    queued.set_written();
    recorded.await;

    let mut waiting = Box::pin(log.record(operation("pause_job", "greet")));
    assert!(waiting.as_mut().now_or_never().is_none(), "nothing is written yet");
    drop(queue);
    waiting.await;
    log.record(operation("pause_job", "greet")).await;
    log.flush().await;
}

// Promises: AUDIT-20
#[tokio::test(start_paused = true)]
async fn a_supervisor_that_hangs_holds_up_no_client_and_what_had_begun_has_its_place() {
    let log = Arc::new(OperationLog::new(REQUESTS));
    let mut queue = log.queue().unwrap();
    log.record(operation("first", "")).await;
    let mut begun = Vec::new();
    for number in 1..queue.max_capacity() {
        begun.push(OperationRecording::begin(&log, operation("begun", &number.to_string())).await);
    }
    // There is no place for it; it goes on without.
    OperationRecording::begin(&log, operation("last", "")).await.finish(OperationOutcome::Done).await;
    drop(begun);
    let mut waiting = Vec::new();
    while let Ok(mut queued) = queue.try_recv() {
        waiting.extend(queued.take());
    }
    assert_eq!((waiting.len(), &*waiting[0].verb), (queue.max_capacity(), "first"));
    assert!(waiting[1..].iter().all(|waiting| (&*waiting.verb, &*waiting.outcome) == ("begun", "unknown")));
}

// Promises: AUDIT-20
#[tokio::test(start_paused = true)]
async fn a_crowd_waits_for_each_other_as_long_as_one_is_written_now_and_then() {
    let log = Arc::new(OperationLog::new(REQUESTS));
    let mut queue = log.queue().unwrap();
    let finished = AtomicUsize::new(0);
    let recorded = futures_util::future::join_all((0..20).map(async |_| {
        log.record(operation("pause_job", "")).await;
        finished.fetch_add(1, Ordering::Relaxed);
    }));
    let written = async {
        for written in 0..20 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(finished.load(Ordering::Relaxed) <= written, "each waits for its own");
            write(&mut queue).await;
        }
    };
    tokio::join!(recorded, written);
    assert_eq!(finished.into_inner(), 20);
}

// Promises: AUDIT-19
#[tokio::test]
async fn each_outcome_has_its_word() {
    let log = Arc::new(OperationLog::new(REQUESTS));
    let mut queue = log.queue().unwrap();
    let outcomes = [
        (OperationOutcome::Done, ("done", "")),
        (OperationOutcome::Denied("only a person decides"), ("denied", "only a person decides")),
        (OperationOutcome::Failed("there is no job"), ("failed", "there is no job")),
        (OperationOutcome::Unknown("it failed on the way"), ("unknown", "it failed on the way")),
    ];
    for (outcome, told) in outcomes {
        let mut recording = OperationRecording::begin(&log, operation("run_job", "greet")).await;
        recording.add_to_subject("of ada");
        let ((), written) = tokio::join!(recording.finish(outcome), write(&mut queue));
        assert_eq!(
            (&*written.outcome, &*written.problem, &*written.subject),
            (told.0, told.1, "greet of ada")
        );
    }
    // The client goes away.
    drop(OperationRecording::begin(&log, operation("run_job", "greet")).await);
    let written = write(&mut queue).await;
    assert_eq!((&*written.verb, &*written.outcome), ("run_job", "unknown"));
    // It turns out to be none; and one that nobody waits for.
    OperationRecording::begin(&log, operation("answer_approval", "")).await.discard();
    let answer = OperationRecording::begin_by_person(&log, "gw:telegram/1", "answer_approval", String::new());
    answer.await.finish_unawaited(OperationOutcome::Done);
    let written = write(&mut queue).await;
    assert_eq!((&*written.verb, &*written.outcome), ("answer_approval", "done"));
    assert_eq!(written.client.unwrap().subject, "gw:telegram/1");
}

#[test]
fn what_an_error_says_is_not_recorded_and_a_write_that_may_have_been_done_is_not_denied() {
    const SAID: &str = "xyzzy";
    for code in (1..=16).map(Code::from_i32) {
        let outcome = OperationOutcome::of(Some(&Status::new(code, SAID)));
        assert!(!format!("{outcome:?}").contains(SAID), "{outcome:?}");
        let refused_before = matches!(
            code,
            Code::InvalidArgument
                | Code::OutOfRange
                | Code::NotFound
                | Code::AlreadyExists
                | Code::FailedPrecondition
                | Code::Unimplemented
        );
        match outcome {
            OperationOutcome::Done => panic!("{code:?} is a refusal"),
            OperationOutcome::Denied(_) => {
                assert!(matches!(code, Code::PermissionDenied | Code::Unauthenticated), "{code:?}");
            }
            OperationOutcome::Failed(_) => assert!(refused_before, "{code:?}"),
            OperationOutcome::Unknown(_) => assert!(!refused_before, "{code:?}"),
        }
    }
    assert_eq!(OperationOutcome::of(None), OperationOutcome::Done);
    let of_steps = |code| OperationOutcome::of_steps(Some(&Status::new(code, SAID)));
    assert!(matches!(of_steps(Code::NotFound), OperationOutcome::Unknown(_)));
    assert!(matches!(of_steps(Code::InvalidArgument), OperationOutcome::Failed(_)));
    assert!(matches!(of_steps(Code::PermissionDenied), OperationOutcome::Denied(_)));
    assert_eq!(OperationOutcome::of_steps(None), OperationOutcome::Done);
}

#[test]
fn what_is_no_id_is_not_recorded() {
    const ID: &str = "01J00000000000000000000000";
    assert_eq!(id(ID), ID);
    for text in
        ["", "xyzzy", "sess_01J00000000000000000000000", "01j00000000000000000000000", &"7".repeat(200)]
    {
        assert_eq!(id(text), NO_ID, "{text}");
    }
    let sha256 = "0123456789abcdef".repeat(4);
    assert_eq!(digest(&sha256), sha256);
    for text in ["", "xyzzy", &sha256[1..], &sha256.to_uppercase()] {
        assert_eq!(digest(text), NO_ID, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_requests_as_may_run_have_a_place_though_each_takes_long() {
    const MANY: u32 = 5_000;
    let log = Arc::new(OperationLog::new(MANY));
    let mut queue = log.queue().unwrap();
    let mut begun = Vec::new();
    for _ in 0..MANY {
        begun.push(OperationRecording::begin(&log, operation("test_notification", "")).await);
    }
    // None of them has ended, and the supervisor was told nothing.
    let last = OperationRecording::begin(&log, operation("run_job", "")).await;
    last.finish_unawaited(OperationOutcome::Done);
    let written = queue.try_recv().expect("it has a place").take().unwrap();
    assert_eq!((&*written.verb, &*written.outcome), ("run_job", "done"));
    drop(begun);
    let left = std::iter::from_fn(|| queue.try_recv().ok()).count();
    assert_eq!(left, MANY as usize, "none of them went without a record");
}

proptest! {
    // Promises: AUDIT-19
    #[test]
    fn no_text_is_longer_than_a_record_holds(subject in "\\PC{0,600}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let log = Arc::new(OperationLog::new(REQUESTS));
        let mut queue = log.queue().unwrap();
        drop(runtime.block_on(OperationRecording::begin(&log, operation("run_job", &subject))));
        let told = queue.try_recv().unwrap().take().unwrap();
        let begins = told.subject.strip_suffix(CUT).filter(|_| subject.len() > MAX_TEXT_BYTES);
        prop_assert!(told.subject.len() <= MAX_TEXT_BYTES && subject.starts_with(begins.unwrap_or(&told.subject)));
        prop_assert_eq!(begins.is_some(), subject.len() > MAX_TEXT_BYTES, "a cut is seen");
        prop_assert!(subject.len() <= MAX_TEXT_BYTES || told.subject.len() > MAX_TEXT_BYTES - 4);
    }
}

proptest! {
    // Each case is a minute and a half of operations.
    #![proptest_config(ProptestConfig::with_cases(8))]

    // Promises: AUDIT-20
    #[test]
    fn no_minute_has_as_many_as_end_the_agent(gaps in prop::collection::vec(0_u64..5_000, 100..200)) {
        // The most operations of a minute that the supervisor takes.
        const ALLOWED: usize = 60_000;
        let start = Instant::now() + Duration::from_secs(60);
        let (mut rate_limit, mut now, mut times) = (RateLimit::new(start), start, Vec::new());
        for gap in gaps {
            now += Duration::from_micros(gap);
            // A crowd at once.
            for _ in 0..400 {
                now = rate_limit.next(now);
                times.push(now);
            }
        }
        let mut first = 0;
        for (last, at) in times.iter().enumerate() {
            while *at - times[first] >= Duration::from_secs(60) {
                first += 1;
            }
            prop_assert!(last - first < ALLOWED);
        }
    }
}
