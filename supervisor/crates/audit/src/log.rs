//! The handle that records calls and operations.
//!
//! A record is in the file before its call is answered, unless that takes longer than a call may wait. So
//! every answered call is in the log even if the supervisor is killed right after. A power cut loses what the
//! kernel had not synced to the disk, at most the records of one sync interval. While writing fails, or has
//! just taken too long, no call waits.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::batch_writer::Shared;
use crate::clock::unix_ms;
use crate::log_event::LogEvent;
use crate::record::Body;
use crate::settings::Settings;

/// How long the supervisor waits for the remaining records to be written when it ends.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a call retries to get the file while the thread holds it, which usually is about to be done with
/// it. Without retries the thread would hold it again at the next call, and would go on to write for all of
/// them.
const FILE_ATTEMPTS: u32 = 4;

/// The state of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStatus {
    /// The file that is written to; the directory while none is open.
    pub file: PathBuf,
    /// Why writing fails, if it does.
    pub problem: Option<String>,
    /// What happened to a file that was written, if something did since the process started: it was removed,
    /// replaced or shortened.
    pub damage: Option<String>,
    /// Records that this process wrote, without those about the chain itself.
    pub records: u64,
    /// Records that were lost.
    pub lost: u64,
}

/// Writes records. Cheap to clone. When the last clone is dropped, the thread writes the remaining records
/// and ends.
#[derive(Debug, Clone)]
pub struct AuditLog(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}

/// Whether other calls are about to record something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// Others may be: their records are written together with this one.
    Concurrent,
    /// None are: the record is written at once.
    Single,
}

impl AuditLog {
    /// Starts the log. What cannot be opened is retried and reported: a failing log never stops the
    /// supervisor. `notify` must not block.
    ///
    /// # Errors
    /// The error of starting the thread.
    pub fn start(settings: Settings, notify: Box<dyn Fn(LogEvent) + Send + Sync>) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(settings, notify));
        let thread = Arc::clone(&shared);
        std::thread::Builder::new().name("talon-audit".to_owned()).spawn(move || thread.run())?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Records `body`, and returns when it is in the file or [`Settings::wait`] has passed. A record that did
    /// not fit into the queue by then is lost. If the future is dropped, the record is still queued or
    /// counted as lost.
    pub async fn record(&self, body: Body, concurrency: Concurrency) {
        let shared = &self.0.0;
        let now = unix_ms(SystemTime::now());
        if shared.late.load(Ordering::Relaxed) {
            return self.record_now(body);
        }
        let mut unqueued = UnqueuedRecord { shared, body: Some((body, now)) };
        let until = tokio::time::Instant::now() + shared.settings.wait;
        let room = match shared.queue.try_reserve() {
            Some(room) => room,
            None => match tokio::time::timeout_at(until, shared.queue.reserve()).await {
                Ok(room) => room,
                Err(_) => return shared.late.store(true, Ordering::Relaxed),
            },
        };
        let Some((body, now)) = unqueued.body.take() else { return };
        let written = room.send(body, now);
        if let Some(mut wake) = shared.queue.wake_guard() {
            for _ in 0..FILE_ATTEMPTS {
                if concurrency == Concurrency::Concurrent {
                    // Every call that has come this far queues its record first, so that they are written
                    // together.
                    tokio::task::yield_now().await;
                }
                match shared.try_write(wake) {
                    Ok(()) => return shared.wait_written(written, until).await,
                    Err(taken) => wake = taken,
                }
            }
            // The thread may be waiting for the disk.
            drop(wake);
        }
        shared.wait_written(written, until).await;
    }

    /// Records without waiting. The record is lost if the queue is full.
    pub fn record_now(&self, body: Body) {
        drop(UnqueuedRecord { shared: &self.0.0, body: Some((body, unix_ms(SystemTime::now()))) });
    }

    /// Writes the remaining records, closes the file in order and releases the directory, so that another
    /// supervisor may write to it. A later record opens it again.
    pub async fn close(&self) {
        let shared = &self.0.0;
        let closed = shared.queue.close();
        // What the disk does not take in this time is lost: ending the process is more important.
        if tokio::time::timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            shared.report_abandoned(shared.queue.records());
        }
    }

    /// The current state of the log. Also makes the thread look at the file soon, so that damage to a log
    /// without new records shows in the next state.
    #[must_use]
    pub fn status(&self) -> LogStatus {
        let shared = &self.0.0;
        shared.queue.wake_thread();
        let state = shared.state();
        let losing = || {
            let losing = shared.dropping.load(Ordering::Relaxed);
            losing.then(|| "the disk does not keep up: records are lost".to_owned())
        };
        LogStatus {
            file: state.file.clone(),
            problem: state.problem.clone().or_else(losing),
            damage: state.damage.clone(),
            records: shared.records.load(Ordering::Relaxed),
            lost: shared.lost.load(Ordering::Relaxed),
        }
    }
}

/// A record that is not queued yet. When this is dropped, the record is queued if there is room, and
/// otherwise counted as lost.
struct UnqueuedRecord<'s> {
    shared: &'s Shared,
    body: Option<(Body, u64)>,
}

impl Drop for UnqueuedRecord<'_> {
    fn drop(&mut self) {
        let Some((body, now)) = self.body.take() else { return };
        match self.shared.queue.try_reserve() {
            Some(room) => {
                // No call waits for its acknowledgement.
                drop(room.send(body, now));
                drop(self.shared.queue.wake_guard());
            }
            None => self.shared.count_lost(now),
        }
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
