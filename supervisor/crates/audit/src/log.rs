//! The handle that records.
//!
//! A record is in the file before its call is answered, unless that takes longer than a call may wait. So what a caller
//! got an answer to is there even if the supervisor is killed right after; a power cut takes what the kernel had not
//! brought to the disk, at most [`SYNC_EVERY`]. While writing fails, or just took too long, nobody waits.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use crate::desk::Shared;
use crate::record::Body;
use crate::writer::{Settings, unix_ms};

/// How long whoever ends the supervisor waits for the rest to be written.
pub const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// How often a call looks again for the file while the thread has it, which mostly is about to be done with it. Left to the thread
/// at once, the thread would have it again when the next call comes, and so on as long as there are calls.
const TURNS_FOR_THE_FILE: u32 = 4;

/// What the keeper of a log should hear.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told {
    /// It works, and something was found that should not be.
    Found(String),
    /// It fails.
    Failing(String),
    /// Records are being lost: the disk does not keep up.
    Losing,
    /// It works again, and so many records are missing.
    Again {
        /// Since it failed.
        lost: u64,
    },
}

/// How a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The file that is written to; the directory as long as there is none.
    pub file: PathBuf,
    /// Why it fails, if it does.
    pub problem: Option<String>,
    /// Records that were written by this process, without those of the chain itself.
    pub records: u64,
    /// Records that were lost.
    pub lost: u64,
}

/// Records. Cheap to clone; the last one that is dropped ends the thread, which writes out what is left.
#[derive(Debug, Clone)]
pub struct AuditLog(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}

/// What a [`Status`] tells of the file.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) file: PathBuf,
    pub(crate) problem: Option<String>,
}

/// Who else is about to record something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Others may be: theirs is written together with this.
    Others,
    /// Nobody: it is written at once.
    Nobody,
}

impl AuditLog {
    /// Begins to record. What cannot be opened is tried again and again, and told: a log that fails stops no supervisor.
    /// `tell` must not wait.
    ///
    /// # Errors
    /// The error of starting the thread.
    pub fn start(settings: Settings, tell: Box<dyn Fn(Told) + Send + Sync>) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(settings, tell));
        let thread = Arc::clone(&shared);
        std::thread::Builder::new().name("talon-audit".to_owned()).spawn(move || thread.run())?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Records, and comes back when it is in the file or [`Settings::wait`] is over. What found no room until then is lost;
    /// dropping the future is no way around it.
    pub async fn record(&self, body: Body, company: Company) {
        let shared = &self.0.0;
        let now = unix_ms(SystemTime::now());
        if shared.late.load(Ordering::Relaxed) {
            return self.record_now(body);
        }
        let mut unplaced = Unplaced { shared, body: Some((body, now)) };
        let until = tokio::time::Instant::now() + shared.settings.wait;
        let room = match shared.queue.room_at_once() {
            Some(room) => room,
            None => match tokio::time::timeout_at(until, shared.queue.room()).await {
                Ok(room) => room,
                Err(_) => return shared.late.store(true, Ordering::Relaxed),
            },
        };
        let Some((body, now)) = unplaced.body.take() else { return };
        let written = room.put(body, now);
        if let Some(mut wake) = shared.queue.wake() {
            for _ in 0..TURNS_FOR_THE_FILE {
                if company == Company::Others {
                    // Every call that is as far as this puts its record in first: they are written together.
                    tokio::task::yield_now().await;
                }
                match shared.write_here(wake) {
                    Ok(()) => return shared.written(written, until).await,
                    Err(taken) => wake = taken,
                }
            }
            // The thread may be waiting for the disk.
            drop(wake);
        }
        shared.written(written, until).await;
    }

    /// Records without waiting for anything; lost if there is no room.
    pub fn record_now(&self, body: Body) {
        drop(Unplaced { shared: &self.0.0, body: Some((body, unix_ms(SystemTime::now()))) });
    }

    /// Writes what is left, ends the file in order and lets go of the directory, so that another supervisor may write to it.
    /// A record that comes later opens it again.
    pub async fn close(&self) {
        let closed = self.0.0.queue.close();
        // What a disk does not take in this time is lost: the end of the process is worth more.
        let _ = tokio::time::timeout(CLOSE_PATIENCE, closed).await;
    }

    /// How it is.
    #[must_use]
    pub fn status(&self) -> Status {
        let shared = &self.0.0;
        let state = shared.state();
        let losing = || {
            let losing = shared.losing.load(Ordering::Relaxed);
            losing.then(|| "the disk does not keep up: records are lost".to_owned())
        };
        Status {
            file: state.file.clone(),
            problem: state.problem.clone().or_else(losing),
            records: shared.records.load(Ordering::Relaxed),
            lost: shared.lost.load(Ordering::Relaxed),
        }
    }
}

/// A record that has no place yet. It takes one if there is one when this is dropped, and otherwise is lost and counted.
struct Unplaced<'s> {
    shared: &'s Shared,
    body: Option<(Body, u64)>,
}

impl Drop for Unplaced<'_> {
    fn drop(&mut self) {
        let Some((body, now)) = self.body.take() else { return };
        match self.shared.queue.room_at_once() {
            Some(room) => {
                // Nobody waits for word of it.
                drop(room.put(body, now));
                drop(self.shared.queue.wake());
            }
            None => self.shared.lose(now),
        }
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
