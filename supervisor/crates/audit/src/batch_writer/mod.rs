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
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::damage::{Continuation, Damage};
use crate::disk_latency::{DiskLatency, WriteTimer};
use crate::log_event::LogEvent;
use crate::queue::{Item, Queue, WakeGuard};
use crate::record::Body;
use crate::settings::Settings;
use crate::writer::Writer;
use crate::writer::open::OpenError;

mod thread;

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
