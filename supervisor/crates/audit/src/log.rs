//! The handle that records, and the thread that writes.
//!
//! A record is in the file before its call is answered, unless that takes longer than a call may wait. So what a caller
//! got an answer to is there even if the supervisor is killed right after; a power cut takes what the kernel had not
//! brought to the disk, at most [`SYNC_EVERY`]. While writing fails, or just took too long, nobody waits.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::queue::{Item, Next, Queue};
use crate::record::Body;
use crate::writer::{OpenError, Settings, Writer, unix_ms};

/// How often what was written is brought to the disk: what a power cut may take.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How long is waited before writing is tried again that failed: soon enough after room was made.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How many records are written at once. The calls of all of them wait for it.
const BATCH_RECORDS: usize = 64;
/// How long whoever ends the supervisor waits for the rest to be written.
pub const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

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

struct Shared {
    queue: Queue,
    settings: Settings,
    tell: Box<dyn Fn(Told) + Send + Sync>,
    records: AtomicU64,
    lost: AtomicU64,
    /// What was lost when it last worked.
    lost_before: AtomicU64,
    /// Whether records are being lost, and that was told.
    losing: AtomicBool,
    /// Writing took longer than a call may wait, or fails: until something is written nobody waits.
    late: AtomicBool,
    state: Mutex<State>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    file: PathBuf,
    problem: Option<String>,
}

impl AuditLog {
    /// Begins to record. What cannot be opened is tried again and again, and told: a log that fails stops no supervisor.
    /// `tell` must not wait.
    ///
    /// # Errors
    /// The error of starting the thread.
    pub fn start(settings: Settings, tell: Box<dyn Fn(Told) + Send + Sync>) -> io::Result<Self> {
        let state = Mutex::new(State { file: settings.dir.clone(), problem: None });
        let shared = Arc::new(Shared {
            queue: Queue::new(),
            settings,
            tell,
            records: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            lost_before: AtomicU64::new(0),
            losing: AtomicBool::new(false),
            late: AtomicBool::new(false),
            state,
        });
        let thread = Arc::clone(&shared);
        std::thread::Builder::new().name("talon-audit".to_owned()).spawn(move || thread.run())?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Records, and comes back when it is in the file or [`Settings::wait`] is over. What found no room until then is lost;
    /// dropping the future is no way around it.
    pub async fn record(&self, body: Body) {
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
        if let Some(wake) = shared.queue.wake() {
            // Every call that is as far as this puts its record in first: they are woken for and written together.
            tokio::task::yield_now().await;
            drop(wake);
        }
        if tokio::time::timeout_at(until, written).await.is_err() {
            shared.late.store(true, Ordering::Relaxed);
        }
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

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, now: u64) {
        self.queue.lose(now);
        self.lost.fetch_add(1, Ordering::Relaxed);
        if !self.losing.swap(true, Ordering::Relaxed) {
            (self.tell)(Told::Losing);
        }
    }

    /// The thread.
    fn run(&self) {
        while let Some(writer) = self.open() {
            match self.write(writer) {
                Some(After::Reopen) => {}
                Some(After::Wait) => {
                    // Closed in order: whoever has something to record comes here again.
                    if !self.wait_for_more() {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    /// Opens the log, however long that takes; `None` once nobody records any more.
    fn open(&self) -> Option<Writer> {
        loop {
            match Writer::open(&self.settings) {
                Ok((writer, findings)) => {
                    self.state().file = writer.path();
                    for finding in findings {
                        (self.tell)(Told::Found(finding));
                    }
                    self.works();
                    return Some(writer);
                }
                Err(error) => self.fails(&error),
            }
            if self.queue.rest(TRY_AGAIN) && self.queue.give_up_closing() {
                return None;
            }
        }
    }

    /// Writes until the file is to be closed.
    fn write(&self, mut writer: Writer) -> Option<After> {
        let mut sync_at = Instant::now() + SYNC_EVERY;
        let mut idle = false;
        loop {
            match self.queue.next(BATCH_RECORDS, (!idle).then_some(sync_at)) {
                Next::Items(items) => {
                    idle = items.is_empty();
                    let told = Self::append(&mut writer, items);
                    if !self.settled(&mut writer) {
                        return None;
                    }
                    self.records.fetch_add(told.len() as u64, Ordering::Relaxed);
                    for written in told {
                        // An error only says that the call did not wait for it.
                        let _ = written.send(());
                    }
                    if Instant::now() >= sync_at || idle {
                        sync_at = Instant::now() + SYNC_EVERY;
                        match writer.sync() {
                            Ok(None) => {}
                            Ok(Some(finding)) => {
                                self.state().file = writer.path();
                                (self.tell)(Told::Found(finding));
                            }
                            Err(error) => {
                                let gone = error.kind() == io::ErrorKind::NotFound;
                                self.fails(&self.io_error(error));
                                if gone {
                                    return Some(After::Reopen);
                                }
                                continue;
                            }
                        }
                    }
                    self.works();
                }
                Next::Close(waiting) => {
                    let closed = writer.close();
                    if let Err(error) = closed {
                        self.fails(&self.io_error(error));
                    }
                    drop(waiting);
                    return Some(After::Wait);
                }
                Next::End => {
                    // Nobody is left who could hear of an error.
                    let _ = writer.close();
                    return None;
                }
            }
        }
    }

    fn append(writer: &mut Writer, items: Vec<Item>) -> Vec<tokio::sync::oneshot::Sender<()>> {
        let mut told = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Record { body, unix_ms, written } => {
                    writer.append(&body, unix_ms);
                    told.push(written);
                }
                Item::Lost { count, unix_ms } => writer.append(&Body::Lost { count }, unix_ms),
            }
        }
        told
    }

    /// Brings what was appended into the file, however long that takes. False if the process ends before that.
    fn settled(&self, writer: &mut Writer) -> bool {
        loop {
            match writer.settle() {
                Ok(()) => {
                    let path = writer.path();
                    let mut state = self.state();
                    if state.file != path {
                        state.file = path;
                    }
                    return true;
                }
                Err(error) => self.fails(&self.io_error(error)),
            }
            if self.queue.rest(TRY_AGAIN) && self.queue.give_up_closing() {
                return false;
            }
        }
    }

    /// Whether there is something to open the log again for.
    fn wait_for_more(&self) -> bool {
        self.queue.wait_for_items()
    }

    fn io_error(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.settings.dir.clone(), source }
    }

    fn fails(&self, error: &OpenError) {
        self.late.store(true, Ordering::Relaxed);
        let problem = error.to_string();
        let mut state = self.state();
        if state.problem.as_ref() != Some(&problem) {
            state.problem = Some(problem.clone());
            drop(state);
            (self.tell)(Told::Failing(problem));
        }
    }

    fn works(&self) {
        self.late.store(false, Ordering::Relaxed);
        let failed = self.state().problem.take().is_some();
        let losing = self.losing.swap(false, Ordering::Relaxed);
        if failed || losing {
            let lost = self.lost.load(Ordering::Relaxed);
            let before = self.lost_before.swap(lost, Ordering::Relaxed);
            (self.tell)(Told::Again { lost: lost - before });
        }
    }
}

/// What comes after a file was closed.
enum After {
    /// It is opened again at once.
    Reopen,
    /// It is opened again when there is something to write.
    Wait,
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
