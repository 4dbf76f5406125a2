use std::fs;
use std::path::Path;

use parking_lot::Mutex;

use super::*;
use crate::queue::{QUEUE_RECORDS, Queue, ThreadTask};
use crate::record::Operation;
use crate::{ChainStart, VerifyRequest, files_of, verify};

fn settings(dir: &Path, wait: Duration) -> Settings {
    Settings { dir: dir.join("audit"), file_bytes: 64 << 20, files: 0, wait, version: "test".to_owned() }
}

fn operation(number: usize) -> Body {
    Body::operation(Operation {
        who: None,
        verb: "stop".to_owned(),
        subject: format!("plugin-{number}"),
        outcome: "done",
        reason: String::new(),
        duration_us: 7,
    })
}

/// The events that a log reports, as a channel.
fn told() -> (Box<dyn Fn(LogEvent) + Send + Sync>, tokio::sync::mpsc::UnboundedReceiver<LogEvent>) {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    (Box::new(move |word| drop(tell.send(word))), told)
}

fn whole(dir: &Path) -> crate::VerifiedChain {
    verify(&VerifyRequest { files: files_of(dir).unwrap(), all: true, anchor: None }).unwrap()
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_record_is_in_the_file_when_its_call_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let log = AuditLog::start(settings.clone(), Box::new(|_| ())).unwrap();
    for number in 0..3 {
        log.record(operation(number), Concurrency::Concurrent).await;
        let text = fs::read_to_string(&files_of(&settings.dir).unwrap()[0]).unwrap();
        assert!(text.contains(&format!("plugin-{number}")), "{text}");
    }
    assert_eq!((log.status().records, log.status().problem), (3, None));
    log.close().await;
    assert_eq!(whole(&settings.dir).records, 6, "the chain's first, started, three, stopped");
}

#[tokio::test]
async fn many_at_once_are_all_there() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let log = AuditLog::start(settings.clone(), Box::new(|_| ())).unwrap();
    let calls = (0..5000).map(|number| {
        let log = log.clone();
        tokio::spawn(async move { log.record(operation(number), Concurrency::Concurrent).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    log.close().await;
    let verified = whole(&settings.dir);
    assert_eq!((verified.records, verified.lost), (5003, 0));
}

/// Calls on several threads write each other's records, and the log's own thread the rest: the files are
/// rotated meanwhile. A record that no call and no thread took care of would be waited for.
// Promises: AUDIT-12
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_left_to_others_is_written_by_them() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { file_bytes: 64 << 10, ..settings(dir.path(), LONG * 60) };
    let log = AuditLog::start(settings.clone(), Box::new(|_| ())).unwrap();
    let calls = (0..64).map(|caller| {
        let log = log.clone();
        tokio::spawn(async move {
            for turn in 0..50 {
                let company =
                    if (caller + turn) % 3 == 0 { Concurrency::Single } else { Concurrency::Concurrent };
                log.record(operation(caller * 50 + turn), company).await;
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!((log.status().records, log.status().lost), (3200, 0));
    log.close().await;
    assert_eq!(whole(&settings.dir).lost, 0);
}

// Promises: AUDIT-8
#[tokio::test]
async fn what_cannot_be_written_is_told_counted_and_said_where_it_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    // A file where the directory should be: nothing can be written until it is gone.
    let settings = settings(dir.path(), Duration::from_millis(1));
    fs::write(&settings.dir, "in the way").unwrap();
    let (tell, mut heard) = told();
    let (sees, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let files = settings.dir.clone();
    let looks_and_tells = move |word: LogEvent| {
        if matches!(word, LogEvent::Recovered { .. }) {
            let _ = sees.send(whole(&files).lost);
        }
        tell(word);
    };
    let log = AuditLog::start(settings.clone(), Box::new(looks_and_tells)).unwrap();
    assert!(matches!(heard.recv().await, Some(LogEvent::Failing(_))));
    assert!(log.status().problem.unwrap().contains("check its owner"));

    // One after the other: none of these waits for what does not come.
    for number in 0..QUEUE_RECORDS + 5 {
        log.record(operation(number), Concurrency::Concurrent).await;
    }
    assert_eq!(log.status().lost, 5);
    assert_eq!(heard.recv().await, Some(LogEvent::Dropping));

    fs::remove_file(&settings.dir).unwrap();
    assert_eq!(heard.recv().await, Some(LogEvent::Recovered { lost: 5 }));
    assert_eq!(seen.recv().await, Some(5), "the file says so when this is told");
    log.record(operation(99_999), Concurrency::Concurrent).await;
    log.close().await;
    let verified = whole(&settings.dir);
    assert_eq!(verified.lost, 5);
    // First what waited, then word of what is missing, then what came later.
    let text = fs::read_to_string(&files_of(&settings.dir).unwrap()[0]).unwrap();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not there"));
    let last = format!("\"plugin-{}\"", QUEUE_RECORDS - 1);
    assert!(at(&last) < at("\"kind\":\"lost\",\"count\":5") && at("\"count\":5") < at("plugin-99999"));
}

// Promises: AUDIT-8
#[tokio::test]
async fn a_call_that_is_given_up_while_it_waits_is_recorded_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let log = AuditLog::start(settings.clone(), Box::new(|_| ())).unwrap();
    {
        let mut record = Box::pin(log.record(operation(1), Concurrency::Concurrent));
        // Polled once, and dropped.
        let _ = futures_poll(record.as_mut());
    }
    {
        // Never polled: nothing was asked of the log.
        drop(log.record(operation(2), Concurrency::Concurrent));
    }
    log.close().await;
    let text = fs::read_to_string(&files_of(&settings.dir).unwrap()[0]).unwrap();
    assert!(text.contains("plugin-1\"") && !text.contains("plugin-2\""));
}

fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

// Promises: AUDIT-10
#[tokio::test]
async fn a_log_that_was_closed_goes_on_with_the_next_record() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let first = AuditLog::start(settings.clone(), Box::new(|_| ())).unwrap();
    first.record(operation(1), Concurrency::Concurrent).await;

    // As at a handover: the second waits for the first to release the directory, and its records wait too.
    let (tell, mut heard) = told();
    let second = AuditLog::start(settings.clone(), tell).unwrap();
    let Some(LogEvent::Failing(why)) = heard.recv().await else { panic!("it should be refused") };
    assert!(why.contains("another process writes"), "{why}");
    second.record_now(operation(2));
    first.close().await;
    assert_eq!(heard.recv().await, Some(LogEvent::Recovered { lost: 0 }));
    second.close().await;

    // And back, as after a handover that did not come about.
    first.record(operation(3), Concurrency::Concurrent).await;
    first.close().await;
    let verified = whole(&settings.dir);
    assert_eq!((verified.start, verified.files, verified.lost), (ChainStart::FirstRecord, 1, 0));
    let text = fs::read_to_string(&files_of(&settings.dir).unwrap()[0]).unwrap();
    assert_eq!(text.matches("\"kind\":\"operation\"").count(), 3);
}

/// A log whose thread is blocked until it is released: it reports an event before it writes, and the report
/// blocks.
fn stalled(dir: &Path, wait: Duration) -> (AuditLog, Settings, std::sync::mpsc::Sender<()>) {
    use std::os::unix::fs::PermissionsExt as _;
    let settings = settings(dir, wait);
    fs::create_dir(&settings.dir).unwrap();
    fs::set_permissions(&settings.dir, fs::Permissions::from_mode(0o777)).unwrap();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let tell = move |told| {
        if let LogEvent::Finding(_) = told {
            let _ = held.lock().recv();
        }
    };
    (AuditLog::start(settings.clone(), Box::new(tell)).unwrap(), settings, let_go)
}

// Promises: AUDIT-8, AUDIT-12
#[tokio::test(start_paused = true)]
async fn a_disk_that_stands_still_keeps_one_call_waiting_and_no_further_one() {
    let dir = tempfile::tempdir().unwrap();
    let wait = Duration::from_millis(100);
    let (log, settings, let_go) = stalled(dir.path(), wait);
    // The clock stands still but for what is waited for.
    let began = tokio::time::Instant::now();
    for number in 0..QUEUE_RECORDS + 7 {
        log.record(operation(number), Concurrency::Concurrent).await;
    }
    assert!(began.elapsed() <= wait + Duration::from_millis(1), "{:?}", began.elapsed());
    assert_eq!(log.status().lost, 7);
    assert!(log.status().problem.unwrap().contains("does not keep up"));
    tokio::time::resume();
    let_go.send(()).unwrap();
    log.close().await;
    let verified = whole(&settings.dir);
    assert_eq!((verified.lost, verified.records), (7, QUEUE_RECORDS as u64 + 4));
    assert_eq!(log.status().problem, None);
}

// Promises: AUDIT-8
#[tokio::test(start_paused = true)]
async fn a_record_that_finds_no_room_in_time_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let wait = Duration::from_millis(100);
    let (log, settings, let_go) = stalled(dir.path(), wait);
    for number in 0..QUEUE_RECORDS {
        log.record_now(operation(number));
    }
    assert_eq!(log.status().lost, 0);
    let began = tokio::time::Instant::now();
    log.record(operation(99_999), Concurrency::Concurrent).await;
    assert!(began.elapsed() <= wait + Duration::from_millis(1), "{:?}", began.elapsed());
    assert_eq!(log.status().lost, 1);
    tokio::time::resume();
    let_go.send(()).unwrap();
    log.close().await;
    assert_eq!(whole(&settings.dir).lost, 1);
}

// Promises: AUDIT-12
#[tokio::test]
async fn a_call_writes_its_record_itself_while_the_thread_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    // Something in the way, of which the thread says that it is gone once the file is open: and it says it
    // slowly.
    fs::write(&settings.dir, "in the way").unwrap();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let held = Mutex::new(held);
    let tell = move |told| {
        let again = matches!(told, LogEvent::Recovered { .. });
        let _ = said.send(told);
        if again {
            let _ = held.lock().recv();
        }
    };
    let log = AuditLog::start(settings.clone(), Box::new(tell)).unwrap();
    assert!(matches!(heard.recv().await, Some(LogEvent::Failing(_))));
    fs::remove_file(&settings.dir).unwrap();
    assert_eq!(heard.recv().await, Some(LogEvent::Recovered { lost: 0 }));
    for (number, company) in [Concurrency::Single, Concurrency::Concurrent].into_iter().enumerate() {
        log.record(operation(number), company).await;
        let text = fs::read_to_string(&files_of(&settings.dir).unwrap()[0]).unwrap();
        assert!(text.contains(&format!("plugin-{number}")), "{text}");
    }
    let_go.send(()).unwrap();
    log.close().await;
    assert_eq!(whole(&settings.dir).records, 5);
}

#[tokio::test]
async fn files_that_fill_up_continue_each_other_whoever_writes() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { file_bytes: 4 << 10, ..settings(dir.path(), LONG) };
    let log = AuditLog::start(settings.clone(), Box::new(|_| ())).unwrap();
    for number in 0..100 {
        log.record(operation(number), Concurrency::Single).await;
    }
    log.close().await;
    let verified = whole(&settings.dir);
    assert_eq!((verified.lost, verified.start), (0, ChainStart::FirstRecord));
    assert!(verified.files > 3, "{verified:?}");
    let full = files_of(&settings.dir).unwrap().into_iter().map(|file| fs::metadata(file).unwrap().len());
    // The record that fills a file and the one that closes it are all that goes beyond.
    assert!(full.max().unwrap() < 6 << 10);
}

// Promises: AUDIT-12
#[tokio::test]
async fn what_a_call_cannot_write_the_thread_writes_later_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let (tell, mut heard) = told();
    let log = AuditLog::start(settings.clone(), tell).unwrap();
    log.record(operation(1), Concurrency::Single).await;
    let path = log.status().file;
    // As on a full disk: a file that takes no writes, and takes them again.
    let writable = log.0.0.exchange_file(fs::File::open(&path).unwrap());
    let mut second = Box::pin(log.record(operation(2), Concurrency::Single));
    assert!(futures_poll(second.as_mut()).is_pending());
    assert!(matches!(heard.recv().await, Some(LogEvent::Failing(_))));
    assert!(log.status().problem.is_some());
    // No other call waits for it.
    log.record(operation(3), Concurrency::Concurrent).await;
    log.0.0.exchange_file(writable);
    second.await;
    assert_eq!(heard.recv().await, Some(LogEvent::Recovered { lost: 0 }));
    log.record(operation(4), Concurrency::Single).await;
    log.close().await;
    assert_eq!(whole(&settings.dir).records, 7);
    let text = fs::read_to_string(&path).unwrap();
    let at = |number| text.find(&format!("plugin-{number}")).unwrap();
    assert!(at(1) < at(2) && at(2) < at(3) && at(3) < at(4));
}

// Promises: AUDIT-12
#[test]
fn one_waking_is_for_everybody_who_put_something_in_before_it() {
    let queue = Queue::new();
    let first = queue.wake_guard();
    assert!(first.is_some() && queue.wake_guard().is_none());
    assert!(queue.wake_guard().is_none(), "who did not get it has not ended it either");
    let now = std::time::Instant::now();
    assert!(matches!(queue.next_task(Some(now)), ThreadTask::SyncDue), "nor woken the thread");
    drop(first);
    assert!(queue.wake_guard().is_some(), "who comes later cannot rely on one that is over");
}

#[tokio::test]
async fn a_call_that_is_given_up_before_it_woke_the_thread_takes_nobody_elses_record_along() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let log = AuditLog::start(settings.clone(), Box::new(|_| ())).unwrap();
    {
        // The first has undertaken to wake the thread, also for the second, and goes.
        let mut first = Box::pin(log.record(operation(1), Concurrency::Concurrent));
        let _ = futures_poll(first.as_mut());
        let mut second = Box::pin(log.record(operation(2), Concurrency::Concurrent));
        let _ = futures_poll(second.as_mut());
        drop(first);
        second.await;
    }
    let text = fs::read_to_string(&files_of(&settings.dir).unwrap()[0]).unwrap();
    assert!(text.contains("plugin-1\"") && text.contains("plugin-2\""), "{text}");
}

#[tokio::test]
async fn the_thread_leaves_alone_what_a_call_is_about_to_write() {
    let queue = Queue::new();
    let told = queue.try_reserve().unwrap().send(operation(1), 7);
    let wake = queue.wake_guard().unwrap();
    let now = std::time::Instant::now();
    assert!(matches!(queue.next_task(Some(now)), ThreadTask::SyncDue));
    // The call gives it up, and the thread has to.
    drop(wake);
    assert!(matches!(queue.next_task(Some(now)), ThreadTask::Write));
    assert!(
        matches!(queue.next_task(Some(now)), ThreadTask::Write),
        "it is still in there, and nobody else sees to it"
    );
    assert_eq!(queue.take_batch(2).len(), 1);
    assert!(told.await.is_err(), "it was thrown away");
    // Closing does not wait for a call.
    let _told = queue.try_reserve().unwrap().send(operation(2), 7);
    let _wake = queue.wake_guard().unwrap();
    let _closed = queue.close();
    assert!(matches!(queue.next_task(None), ThreadTask::Write));
    queue.take_batch(1);
    assert!(matches!(queue.next_task(None), ThreadTask::Close(_)));
}

/// The number of records of a kind in the files of a log.
fn count_kind(dir: &Path, kind: &str) -> usize {
    let texts = files_of(dir).unwrap().into_iter().map(|file| fs::read_to_string(file).unwrap());
    texts.map(|text| text.matches(&format!("\"kind\":\"{kind}\"")).count()).sum()
}

/// Waits until the log has reported damage.
async fn damaged(
    log: &AuditLog,
    events: &mut tokio::sync::mpsc::UnboundedReceiver<LogEvent>,
) -> (String, u64) {
    // Each look at the state makes the thread look at the file.
    let message = loop {
        let _ = log.status();
        match tokio::time::timeout(Duration::from_millis(50), events.recv()).await {
            Ok(Some(LogEvent::Damaged(message))) => break message,
            Ok(None) => panic!("the log ended"),
            Ok(Some(_)) | Err(_) => {}
        }
    };
    let status = log.status();
    assert_eq!(status.damage.as_ref(), Some(&message));
    (message, status.lost)
}

// Promises: AUDIT-13
#[tokio::test]
async fn a_directory_that_is_removed_is_noticed_and_the_chain_continues() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let (tell, mut events) = told();
    let log = AuditLog::start(settings.clone(), tell).unwrap();
    for number in 0..10 {
        log.record(operation(number), Concurrency::Single).await;
    }
    fs::remove_dir_all(&settings.dir).unwrap();
    // Without any new record.
    let (message, lost) = damaged(&log, &mut events).await;
    // The chain's first record, the start, and ten operations.
    assert_eq!(lost, 12);
    assert!(
        message.contains("audit-000000000001.jsonl was removed") && message.contains("12 records are lost")
    );
    log.record(operation(99), Concurrency::Single).await;
    // The record may be written before the thread says that the log works again.
    while log.status().problem.is_some() {
        events.recv().await.expect("the log runs");
    }
    log.close().await;
    let text = fs::read_to_string(&files_of(&settings.dir).unwrap()[0]).unwrap();
    assert!(text.starts_with("{\"seq\":13,") && text.contains("\"kind\":\"lost\",\"count\":12,"), "{text}");
    // What is missing is missed, with the log's own statement about it.
    let request = VerifyRequest { files: files_of(&settings.dir).unwrap(), all: true, anchor: None };
    let error = verify(&request).unwrap_err().to_string();
    assert!(
        error.contains("removed: expected record 1")
            && error.contains("record 14 says that 12 records are lost"),
        "{error}"
    );
    // What is there is one chain.
    let verified = verify(&VerifyRequest { all: false, ..request }).unwrap();
    assert_eq!((verified.lost, verified.start), (12, ChainStart::FirstGivenFile(13)));
}

// Promises: AUDIT-13
#[tokio::test]
async fn a_file_that_is_removed_or_shortened_is_noticed() {
    for shorten in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), LONG);
        let (tell, mut events) = told();
        let log = AuditLog::start(settings.clone(), tell).unwrap();
        for number in 0..10 {
            log.record(operation(number), Concurrency::Single).await;
        }
        let path = log.status().file;
        if shorten {
            let text = fs::read_to_string(&path).unwrap();
            let end = text.match_indices('\n').nth(6).unwrap().0;
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(end as u64 + 1).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        let (message, lost) = damaged(&log, &mut events).await;
        assert_eq!(lost, if shorten { 5 } else { 12 }, "{message}");
        assert!(message.contains(if shorten { "was shortened" } else { "was removed" }), "{message}");
        log.record(operation(99), Concurrency::Single).await;
        log.close().await;
        assert_eq!(count_kind(&settings.dir, "lost"), 1);
        let request = VerifyRequest { files: files_of(&settings.dir).unwrap(), all: true, anchor: None };
        let error = verify(&request).unwrap_err().to_string();
        assert!(error.contains("removed: expected") && error.contains("records are lost: audit-"), "{error}");
    }
}

// Promises: AUDIT-13
#[tokio::test]
async fn a_file_that_is_removed_while_the_log_is_closed_is_noticed_when_it_opens() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let (tell, mut events) = told();
    let log = AuditLog::start(settings.clone(), tell).unwrap();
    log.record(operation(1), Concurrency::Single).await;
    let path = log.status().file;
    log.close().await;
    fs::remove_file(&path).unwrap();
    log.record(operation(2), Concurrency::Single).await;
    let (message, lost) = damaged(&log, &mut events).await;
    assert!(message.contains("removed or emptied"), "{message}");
    assert_eq!(lost, 4, "the chain's first record, the start, one operation and the stop");
    log.close().await;
}

// Promises: AUDIT-14
#[tokio::test]
async fn what_cannot_be_written_when_the_log_is_closed_is_counted_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), LONG);
    let (tell, mut events) = told();
    let log = AuditLog::start(settings.clone(), tell).unwrap();
    log.record(operation(0), Concurrency::Single).await;
    let path = log.status().file;
    // As on a full disk.
    log.0.0.exchange_file(fs::File::open(&path).unwrap());
    for number in 1..=650 {
        log.record_now(operation(number));
    }
    assert!(matches!(events.recv().await, Some(LogEvent::Failing(_))));
    assert_eq!(log.status().lost, 0);
    log.close().await;
    assert_eq!(events.recv().await, Some(LogEvent::Abandoned { records: 650 }));
    assert_eq!(log.status().lost, 650);
    // The disk has room again, and the log continues with the next record.
    log.record_now(operation(651));
    assert_eq!(events.recv().await, Some(LogEvent::Recovered { lost: 650 }));
    log.close().await;
    assert_eq!(count_kind(&settings.dir, "operation"), 2);
    assert_eq!((whole(&settings.dir).start, whole(&settings.dir).lost), (ChainStart::FirstRecord, 650));
}

// Promises: AUDIT-14
#[tokio::test]
async fn a_log_that_was_never_opened_counts_what_it_leaves_behind() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), Duration::from_millis(1));
    fs::write(&settings.dir, "in the way").unwrap();
    let (tell, mut events) = told();
    let log = AuditLog::start(settings.clone(), tell).unwrap();
    assert!(matches!(events.recv().await, Some(LogEvent::Failing(_))));
    for number in 0..3 {
        log.record(operation(number), Concurrency::Concurrent).await;
    }
    log.close().await;
    assert_eq!(events.recv().await, Some(LogEvent::Abandoned { records: 3 }));
    assert_eq!(log.status().lost, 3);
}
