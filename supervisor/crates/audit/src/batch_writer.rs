//! Writes queued records: usually on the task of a call, and on the log's thread where a write would hold calls up.
//!
//! A write goes into the kernel's memory and takes microseconds. Handing it to a thread costs two context switches,
//! each more expensive than the write. So the first call to record in a turn of the runtime writes for all of them.
//! Everything that may wait for the disk is done by the thread: opening, syncing, beginning the next file, retrying and
//! closing. While writes [take long](crate::disk_latency), the thread does all of them.

use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::disk_latency::{DiskLatency, WriteTimer};
use crate::log_event::LogEvent;
use crate::queue::{Item, Queue, ThreadTask, WakeGuard};
use crate::record::Body;
use crate::writer::{OpenError, Settings, Writer};

/// How often written data is synced to the disk, which is the most that a power cut loses.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before a failed write is retried: soon enough after disk space was freed.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How many records are written at once. The calls of all of them wait for the batch.
const BATCH_RECORDS: usize = 64;

/// The part of a [`LogStatus`](crate::LogStatus) that describes the file.
#[derive(Debug)]
pub(crate) struct FileState {
    pub(crate) file: PathBuf,
    pub(crate) problem: Option<String>,
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

/// The open file. The lock's holder takes records out of the queue and writes them, which keeps the file in queue
/// order.
#[derive(Debug, Default)]
struct BatchWriter {
    /// None while the log is not open.
    writer: Option<Writer>,
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
        let state = Mutex::new(FileState { file: settings.dir.clone(), problem: None });
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

    /// Writes the queued records, unless that may take long: then it leaves them to the thread. `Err` if the thread
    /// holds the file at this moment.
    pub(crate) fn try_write<'w>(&self, wake: WakeGuard<'w>) -> Result<(), WakeGuard<'w>> {
        let Some(mut batch_writer) = self.batch_writer.try_lock() else { return Err(wake) };
        self.write_batches(&mut batch_writer, wake);
        Ok(())
    }

    /// Every early return drops `wake`, which wakes the thread.
    fn write_batches(&self, batch_writer: &mut BatchWriter, wake: WakeGuard<'_>) {
        let BatchWriter { writer, unacknowledged, idle, latency } = batch_writer;
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
    pub(crate) async fn wait_written(&self, written: oneshot::Receiver<()>, until: tokio::time::Instant) {
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
        while self.open() {
            let after = self.write();
            // Closed, or the log's directory is gone.
            self.batch_writer.lock().writer = None;
            match after {
                Some(AfterClose::Reopen) => {}
                Some(AfterClose::Wait) => {
                    // Closed in order. The next record makes the thread open the log again.
                    if !self.queue.wait_for_items() {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    /// Opens the log, and retries until that works. False once no handle is left.
    fn open(&self) -> bool {
        loop {
            match Writer::open(&self.settings) {
                Ok((writer, findings)) => {
                    self.state().file = writer.path();
                    for finding in findings {
                        (self.notify)(LogEvent::Finding(finding));
                    }
                    self.batch_writer.lock().writer = Some(writer);
                    self.report_recovery();
                    return true;
                }
                Err(error) => self.report_failure(&error),
            }
            if self.queue.pause(RETRY_INTERVAL) && self.queue.abandon_close() {
                return false;
            }
        }
    }

    /// Writes what calls do not, and syncs what they wrote, until the file is to be closed.
    fn write(&self) -> Option<AfterClose> {
        let mut sync_at = Instant::now() + SYNC_INTERVAL;
        let mut idle = false;
        loop {
            let next = self.queue.next_task((!idle).then_some(sync_at));
            match next {
                ThreadTask::Write | ThreadTask::SyncDue => {
                    // The rest of an unfinished write goes before the queued records.
                    let mut batch_writer = self.settle(self.batch_writer.lock())?;
                    self.acknowledge(std::mem::take(&mut batch_writer.unacknowledged));
                    let items = self.queue.take_batch(BATCH_RECORDS);
                    let writer = batch_writer.writer.as_mut()?;
                    idle = items.is_empty() && !writer.is_unsynced();
                    let waiters = append(writer, items);
                    batch_writer = self.settle(batch_writer)?;
                    self.acknowledge(waiters);
                    batch_writer.idle = idle;
                    let mut found = None;
                    if Instant::now() >= sync_at {
                        sync_at = Instant::now() + SYNC_INTERVAL;
                        let writer = batch_writer.writer.as_mut()?;
                        match writer.sync() {
                            Ok(None) => {}
                            Ok(Some(finding)) => {
                                self.state().file = writer.path();
                                found = Some(finding);
                            }
                            Err(error) => {
                                let gone = error.kind() == io::ErrorKind::NotFound;
                                self.report_failure(&self.io_error(error));
                                if gone {
                                    return Some(AfterClose::Reopen);
                                }
                                continue;
                            }
                        }
                    }
                    // The notification may be slow; calls may write meanwhile.
                    drop(batch_writer);
                    if let Some(finding) = found {
                        (self.notify)(LogEvent::Finding(finding));
                    }
                    self.report_recovery();
                }
                ThreadTask::Close(waiting) => {
                    if let Err(error) = self.close() {
                        self.report_failure(&self.io_error(error));
                    }
                    drop(waiting);
                    return Some(AfterClose::Wait);
                }
                ThreadTask::End => {
                    // No handle is left to report an error to.
                    let _ = self.close();
                    return None;
                }
            }
        }
    }

    fn close(&self) -> io::Result<()> {
        let writer = self.batch_writer.lock().writer.take();
        writer.map_or(Ok(()), Writer::close)
    }

    /// Writes the appended records to the file, and begins the next file if this one is full, however long that takes.
    /// Takes nothing out of the queue meanwhile. `None` if the log is to be closed before that succeeds.
    fn settle<'d>(
        &'d self,
        mut batch_writer: MutexGuard<'d, BatchWriter>,
    ) -> Option<MutexGuard<'d, BatchWriter>> {
        loop {
            // It is set from when the log is opened until it is closed here.
            let writer = batch_writer.writer.as_mut()?;
            match writer.settle() {
                Ok(()) => {
                    let path = writer.path();
                    let mut state = self.state();
                    if state.file != path {
                        state.file = path;
                    }
                    drop(state);
                    return Some(batch_writer);
                }
                Err(error) => self.report_failure(&self.io_error(error)),
            }
            drop(batch_writer);
            if self.queue.pause(RETRY_INTERVAL) && self.queue.abandon_close() {
                return None;
            }
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
        // The notification says that the file records the gap, so that record has to be written first, after everything
        // queued before it.
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
            Item::Lost { count, unix_ms } => writer.append(&Body::Lost { count }, unix_ms),
        }
    }
    waiters
}

/// What to do after a file was closed.
enum AfterClose {
    /// Open it again at once.
    Reopen,
    /// Open it again when there is a record to write.
    Wait,
}
