//! The log's thread: everything that may wait for the disk.

use std::io;
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use super::{BATCH_RECORDS, BatchWriter, Shared, append};
use crate::log_event::LogEvent;
use crate::queue::{Item, ThreadTask};
use crate::writer::Writer;
use crate::writer::close::Unwritten;

/// How often written data is synced to the disk, which is the most that a power cut loses.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before a failed write is retried: soon enough after disk space was freed.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
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

impl Shared {
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
}
