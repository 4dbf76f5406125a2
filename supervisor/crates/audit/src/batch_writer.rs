//! Writes queued records: usually on the task of a call, and on the log's thread where a write would hold
//! calls up.
//!
//! A write goes into the kernel's memory and takes microseconds. Handing it to a thread costs two context
//! switches, each more expensive than the write. So the first call to record in a turn of the runtime writes
//! for all of them. Everything that may wait for the disk is done by the thread: opening, syncing, beginning
//! the next file, retrying and closing. While writes [take long](crate::disk_latency), the thread does all of
//! them.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::damage::{Continuation, Damage};
use crate::disk_latency::{DiskLatency, WriteTimer};
use crate::log_event::LogEvent;
use crate::queue::{Item, Queue, ThreadTask, WakeGuard};
use crate::record::Body;
use crate::writer::{OpenError, Settings, Unwritten, Writer};

/// How often written data is synced to the disk, which is the most that a power cut loses.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before a failed write is retried: soon enough after disk space was freed.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How many records are written at once. The calls of all of them wait for the batch.
const BATCH_RECORDS: usize = 64;

/// For so many turns of the runtime a record is waited for without a timer. The writer needs one; a second,
/// if its turn comes after that of the calls it writes for.
const TURNS_WITHOUT_TIMER: u32 = 2;

/// The part of a [`LogStatus`](crate::LogStatus) that describes the file.
#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) file: PathBuf,
    pub(crate) problem: Option<String>,
    /// What happened to a file that was written, if something did. Kept until the process ends.
    pub(crate) damage: Option<String>,
}

/// The state that the handles and the thread share.
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    pub(crate) settings: Settings,
    pub(crate) notify: Box<dyn Fn(LogEvent) + Send + Sync>,
    pub(crate) records: AtomicU64,
    pub(crate) lost: AtomicU64,
    /// The number of lost records when the log last worked.
    lost_before: AtomicU64,
    /// Whether records are being lost and this was reported.
    pub(crate) dropping: AtomicBool,
    /// Writing took longer than a call may wait, or fails. Until a write succeeds, no call waits.
    pub(crate) late: AtomicBool,
    state: Mutex<FileState>,
    batch_writer: Mutex<BatchWriter>,
}

/// The open file. The lock's holder takes records out of the queue and writes them, which keeps the file in
/// queue order.
#[derive(Debug, Default)]
struct BatchWriter {
    /// None while the log is not open.
    writer: Option<Writer>,
    /// What the log continues from when it is opened again.
    continuation: Continuation,
    /// Records that are not completely written yet.
    unacknowledged: Vec<oneshot::Sender<()>>,
    /// The thread assumes that everything is synced and does not check again.
    idle: bool,
    latency: DiskLatency,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(settings: Settings, notify: Box<dyn Fn(LogEvent) + Send + Sync>) -> Self {
        let state = Mutex::new(FileState { file: settings.dir.clone(), problem: None, damage: None });
        Self {
            queue: Queue::new(),
            settings,
            notify,
            records: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            lost_before: AtomicU64::new(0),
            dropping: AtomicBool::new(false),
            late: AtomicBool::new(false),
            state,
            batch_writer: Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FileState> {
        self.state.lock()
    }

    /// Counts a record that did not fit into the queue.
    pub(crate) fn count_lost(&self, now: u64) {
        self.queue.count_lost(now);
        self.lost.fetch_add(1, Ordering::Relaxed);
        if !self.dropping.swap(true, Ordering::Relaxed) {
            (self.notify)(LogEvent::Dropping);
        }
    }

    /// Writes the queued records, unless that may take long: then it leaves them to the thread. `Err` if the
    /// thread holds the file at this moment.
    pub(crate) fn try_write<'w>(&self, wake: WakeGuard<'w>) -> Result<(), WakeGuard<'w>> {
        let Some(mut batch_writer) = self.batch_writer.try_lock() else { return Err(wake) };
        self.write_batches(&mut batch_writer, wake);
        Ok(())
    }

    /// Every early return drops `wake`, which wakes the thread.
    fn write_batches(&self, batch_writer: &mut BatchWriter, wake: WakeGuard<'_>) {
        let BatchWriter { writer, unacknowledged, idle, latency, .. } = batch_writer;
        let Some(writer) = writer.as_mut().filter(|writer| writer.has_room()) else { return };
        if !latency.allows_inline_write(Instant::now()) {
            return;
        }
        wake.disarm();
        while writer.has_room() {
            let items = self.queue.take_batch(BATCH_RECORDS);
            if items.is_empty() {
                break;
            }
            let waiters = append(writer, items);
            let timed = WriteTimer::begin();
            let written = writer.flush();
            latency.observe(&timed);
            match written {
                Ok(()) => self.acknowledge(waiters),
                Err(error) => {
                    // The thread retries until it works, and acknowledges them then.
                    *unacknowledged = waiters;
                    self.report_failure(&self.io_error(error));
                    return self.queue.wake_thread();
                }
            }
        }
        // There is something to sync, or a next file to begin for the queued records.
        if std::mem::take(idle) || !writer.has_room() {
            self.queue.wake_thread();
        }
        self.report_recovery();
    }

    /// Waits until a record is acknowledged or `until` has passed.
    pub(crate) async fn wait_written(&self, mut written: oneshot::Receiver<()>, until: tokio::time::Instant) {
        // Mostly the call that writes for all of them does so in this turn of the runtime. A timer for each
        // record would interrupt the runtime's sleep each time, by a system call.
        for _ in 0..TURNS_WITHOUT_TIMER {
            match written.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => tokio::task::yield_now().await,
                Ok(()) | Err(oneshot::error::TryRecvError::Closed) => return,
            }
        }
        if tokio::time::timeout_at(until, written).await.is_err() {
            self.late.store(true, Ordering::Relaxed);
        }
    }

    fn acknowledge(&self, waiters: Vec<oneshot::Sender<()>>) {
        self.records.fetch_add(waiters.len() as u64, Ordering::Relaxed);
        for written in waiters {
            // An error only means that the call no longer waits.
            let _ = written.send(());
        }
    }

    #[cfg(test)]
    pub(crate) fn exchange_file(&self, file: std::fs::File) -> std::fs::File {
        self.batch_writer.lock().writer.as_mut().expect("it is open").exchange_file(file)
    }

    /// The body of the log's thread.
    pub(crate) fn run(&self) {
        loop {
            let after = if self.open() { self.write() } else { AfterWrite::GiveUp };
            let is_needed = match after {
                AfterWrite::Reopen => {
                    // The log's directory is gone.
                    let mut batch_writer = self.batch_writer.lock();
                    if let Some(writer) = batch_writer.writer.take() {
                        batch_writer.continuation.end = Some(writer.end());
                    }
                    continue;
                }
                AfterWrite::Closed => true,
                AfterWrite::GiveUp => self.give_up(),
                AfterWrite::End => false,
            };
            // The next record makes the thread open the log again.
            if !is_needed || !self.queue.wait_for_items() {
                return;
            }
        }
    }

    /// Opens the log, and retries until that works. False if it is to be closed before.
    fn open(&self) -> bool {
        let mut is_last_attempt = false;
        let continuation = self.batch_writer.lock().continuation.clone();
        loop {
            match Writer::open(&self.settings, &continuation) {
                Ok(opened) => {
                    self.state().file = opened.writer.path();
                    for finding in opened.findings {
                        (self.notify)(LogEvent::Finding(finding));
                    }
                    let mut batch_writer = self.batch_writer.lock();
                    batch_writer.continuation.unnoted = 0;
                    batch_writer.writer = Some(opened.writer);
                    drop(batch_writer);
                    if let Some(damage) = opened.damage {
                        self.report_damage(&damage);
                    }
                    self.report_recovery();
                    return true;
                }
                Err(error) => self.report_failure(&error),
            }
            if is_last_attempt {
                return false;
            }
            is_last_attempt = self.queue.pause(RETRY_INTERVAL);
        }
    }

    /// Closes a log that cannot be written. What is not in it is lost: counted, noted in the file if
    /// possible, and reported. Returns whether a handle is left.
    fn give_up(&self) -> bool {
        let mut queued = Unwritten::default();
        for item in self.queue.drain() {
            match item {
                Item::Record { .. } => queued.records += 1,
                Item::Lost { count, .. } => queued.lost += count,
            }
        }
        let mut batch_writer = self.batch_writer.lock();
        batch_writer.unacknowledged.clear();
        let (missing, is_noted) = match batch_writer.writer.take() {
            Some(mut writer) => {
                let closed = writer.close_incomplete(queued);
                batch_writer.continuation.end = Some(writer.end());
                closed
            }
            None => (queued, false),
        };
        if !is_noted {
            batch_writer.continuation.unnoted += missing.records + missing.lost;
        }
        drop(batch_writer);
        self.report_abandoned(missing.records);
        self.queue.finish_close()
    }

    /// Counts and reports records that are not in the log when it is closed.
    pub(crate) fn report_abandoned(&self, records: u64) {
        if records > 0 {
            self.lost.fetch_add(records, Ordering::Relaxed);
            (self.notify)(LogEvent::Abandoned { records });
        }
    }

    fn report_damage(&self, damage: &Damage) {
        self.lost.fetch_add(damage.records, Ordering::Relaxed);
        let message = damage.message();
        self.state().damage = Some(message.clone());
        (self.notify)(LogEvent::Damaged(message));
    }

    /// Writes what calls do not, and syncs what they wrote, until the file is to be closed.
    fn write(&self) -> AfterWrite {
        let mut sync_at = Instant::now() + SYNC_INTERVAL;
        let mut idle = false;
        loop {
            let next = self.queue.next_task((!idle).then_some(sync_at));
            match next {
                ThreadTask::Write | ThreadTask::SyncDue => {
                    // The rest of an unfinished write goes before the queued records.
                    let mut batch_writer = match self.settle(self.batch_writer.lock()) {
                        Ok(batch_writer) => batch_writer,
                        Err(after) => return after,
                    };
                    self.acknowledge(std::mem::take(&mut batch_writer.unacknowledged));
                    let items = self.queue.take_batch(BATCH_RECORDS);
                    let Some(writer) = batch_writer.writer.as_mut() else { return AfterWrite::Reopen };
                    idle = items.is_empty() && !writer.is_unsynced();
                    batch_writer.unacknowledged = append(writer, items);
                    batch_writer = match self.settle(batch_writer) {
                        Ok(batch_writer) => batch_writer,
                        Err(after) => return after,
                    };
                    self.acknowledge(std::mem::take(&mut batch_writer.unacknowledged));
                    batch_writer.idle = idle;
                    let mut found = None;
                    if Instant::now() >= sync_at {
                        sync_at = Instant::now() + SYNC_INTERVAL;
                        let Some(writer) = batch_writer.writer.as_mut() else { return AfterWrite::Reopen };
                        match writer.sync() {
                            Ok(None) => {}
                            Ok(Some(damage)) => {
                                self.state().file = writer.path();
                                found = Some(damage);
                            }
                            Err(error) => {
                                let gone = error.kind() == io::ErrorKind::NotFound;
                                self.report_failure(&self.io_error(error));
                                if gone {
                                    return AfterWrite::Reopen;
                                }
                                continue;
                            }
                        }
                    }
                    // The notification may be slow; calls may write meanwhile.
                    drop(batch_writer);
                    if let Some(damage) = found {
                        self.report_damage(&damage);
                    }
                    self.report_recovery();
                }
                ThreadTask::Close(waiting) => {
                    self.close();
                    drop(waiting);
                    return AfterWrite::Closed;
                }
                ThreadTask::End => {
                    self.close();
                    return AfterWrite::End;
                }
            }
        }
    }

    /// Closes the file, after everything that was queued is in it.
    fn close(&self) {
        let mut batch_writer = self.batch_writer.lock();
        let Some(mut writer) = batch_writer.writer.take() else { return };
        if let Err(error) = writer.close() {
            self.report_failure(&self.io_error(error));
            writer.close_incomplete(Unwritten::default());
        }
        batch_writer.continuation.end = Some(writer.end());
    }

    /// Writes the appended records to the file, and begins the next file if this one is full, however long
    /// that takes. Takes nothing out of the queue meanwhile. `Err` if the log is to be closed before that
    /// succeeds, or has to be opened again.
    fn settle<'d>(
        &'d self,
        mut batch_writer: MutexGuard<'d, BatchWriter>,
    ) -> Result<MutexGuard<'d, BatchWriter>, AfterWrite> {
        let mut is_last_attempt = false;
        loop {
            // It is set from when the log is opened until it is closed here.
            let Some(writer) = batch_writer.writer.as_mut() else { return Err(AfterWrite::Reopen) };
            match writer.settle() {
                Ok(()) => {
                    let path = writer.path();
                    let mut state = self.state();
                    if state.file != path {
                        state.file = path;
                    }
                    drop(state);
                    return Ok(batch_writer);
                }
                Err(error) => {
                    let gone = error.kind() == io::ErrorKind::NotFound;
                    self.report_failure(&self.io_error(error));
                    if gone {
                        // The next file cannot be begun in a directory that is gone; this one has all
                        // records.
                        self.acknowledge(std::mem::take(&mut batch_writer.unacknowledged));
                        return Err(AfterWrite::Reopen);
                    }
                }
            }
            if is_last_attempt {
                return Err(AfterWrite::GiveUp);
            }
            drop(batch_writer);
            is_last_attempt = self.queue.pause(RETRY_INTERVAL);
            batch_writer = self.batch_writer.lock();
        }
    }

    fn io_error(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.settings.dir.clone(), source }
    }

    fn report_failure(&self, error: &OpenError) {
        self.late.store(true, Ordering::Relaxed);
        let problem = error.to_string();
        let mut state = self.state();
        if state.problem.as_ref() != Some(&problem) {
            state.problem = Some(problem.clone());
            drop(state);
            (self.notify)(LogEvent::Failing(problem));
        }
    }

    fn report_recovery(&self) {
        self.late.store(false, Ordering::Relaxed);
        let trouble = self.state().problem.is_some() || self.dropping.load(Ordering::Relaxed);
        // The notification says that the file records the gap, so that record has to be written first, after
        // everything queued before it.
        if !trouble || self.queue.has_lost() {
            return;
        }
        let failed = self.state().problem.take().is_some();
        let losing = self.dropping.swap(false, Ordering::Relaxed);
        if failed || losing {
            let lost = self.lost.load(Ordering::Relaxed);
            let before = self.lost_before.swap(lost, Ordering::Relaxed);
            (self.notify)(LogEvent::Recovered { lost: lost - before });
        }
    }
}

fn append(writer: &mut Writer, items: Vec<Item>) -> Vec<oneshot::Sender<()>> {
    let mut waiters = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Item::Record { body, unix_ms, written } => {
                writer.append(&body, unix_ms);
                waiters.push(written);
            }
            Item::Lost { count, unix_ms } => {
                writer.append(&Body::Lost { count, why: String::new() }, unix_ms);
            }
        }
    }
    waiters
}

/// What to do when nothing more can be written to a file, or need be.
enum AfterWrite {
    /// Open the log again at once.
    Reopen,
    /// It was closed in order: open it again when there is a record to write.
    Closed,
    /// It has to be closed although it cannot be written.
    GiveUp,
    /// It was closed in order, and no handle is left.
    End,
}
