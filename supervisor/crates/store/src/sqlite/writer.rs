//! The writer thread, and how writes share a commit.
//!
//! A commit waits for the disk once, which costs more than everything else. While the disk is busy, further
//! writes arrive; the next transaction takes all of them, each in a separate savepoint, so that a failed one
//! is rolled back alone. This adds no waiting: there is no timer, and a single write is committed at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Notify, mpsc, oneshot};

use super::lock::Lock;
use super::wal::{Wal, WalFullError};
use crate::counters::Counters;
use crate::error::Error;

/// How many writes are queued at most; further callers wait for room in the queue. A value is at most a
/// megabyte, so this bounds the memory too.
const MAX_WAITING: usize = 256;
/// How many writes share a commit at most, so that the first of them does not wait for ever new ones.
const MAX_SHARED: usize = 256;

/// The handle of the thread.
pub(super) struct Writer {
    commands: mpsc::Sender<WriteCommand>,
    counters: Arc<WriteCounters>,
    refused_for_room: Notify,
}

#[derive(Default)]
struct WriteCounters {
    writes: AtomicU64,
    commits: AtomicU64,
}

enum WriteCommand {
    Write(Box<dyn Work>),
    /// Runs alone, not in a transaction with others.
    Exclusive(ExclusiveWork),
    /// Answered when the database is closed and the lock released.
    Stop(oneshot::Sender<()>),
}

type ExclusiveWork = Box<dyn FnOnce(&mut Connection) + Send>;

impl Writer {
    pub(super) fn start(
        connection: Connection,
        lock: Lock,
        log: Wal,
        busy: Duration,
    ) -> std::io::Result<Self> {
        let (orders, queue) = mpsc::channel(MAX_WAITING);
        let tally = Arc::new(WriteCounters::default());
        let thread = WriterThread {
            connection,
            log,
            queue,
            counters: Arc::clone(&tally),
            busy,
            exclusive: None,
            stopped: None,
        };
        std::thread::Builder::new().name("talon-store".into()).spawn(move || {
            let stopped = thread.serve();
            drop(lock);
            // The caller may have stopped waiting.
            let _sent = stopped.map(|stopped| stopped.send(()));
        })?;
        Ok(Self { commands: orders, counters: tally, refused_for_room: Notify::new() })
    }

    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Task { work, result: Err(Error::Closed), reply };
        self.commands.send(WriteCommand::Write(Box::new(task))).await.map_err(|_| Error::Closed)?;
        let result = answer.await.unwrap_or(Err(Error::Closed));
        if let Err(Error::Full(_)) = result {
            self.refused_for_room.notify_one();
        }
        result
    }

    /// Resolves when a write was refused for lack of room since the last time.
    pub(super) async fn refused_for_room(&self) {
        self.refused_for_room.notified().await;
    }

    /// Runs `work` after all earlier writes, with exclusive use of the connection and outside a transaction.
    /// Unlike a write, it runs once.
    pub(super) async fn run_exclusive<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let alone: ExclusiveWork = Box::new(move |connection| {
            if !reply.is_closed() {
                let worked = catch_unwind(AssertUnwindSafe(|| work(connection)));
                // The caller may have stopped waiting.
                let _sent =
                    reply.send(worked.unwrap_or_else(|_| Err(Error::Engine("the write panicked".into()))));
            }
        });
        self.commands.send(WriteCommand::Exclusive(alone)).await.map_err(|_| Error::Closed)?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    pub(super) fn counters(&self) -> Counters {
        let WriteCounters { writes, commits } = &*self.counters;
        Counters { writes: writes.load(Ordering::Relaxed), commits: commits.load(Ordering::Relaxed) }
    }

    pub(super) async fn close(&self) {
        let (stopped, end) = oneshot::channel();
        if self.commands.send(WriteCommand::Stop(stopped)).await.is_ok() {
            // An error means that the thread has ended, which is what this waits for.
            let _ended = end.await;
        }
    }
}

/// A write with its reply channel, without the type of its result.
trait Work: Send {
    /// Whether the caller has stopped waiting.
    fn is_abandoned(&self) -> bool;
    /// Executes the write; returns whether it succeeded.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Replaces the result of `run` by an error.
    fn fail(&mut self, error: Error);
    /// Sends the result to the caller.
    fn reply(self: Box<Self>);
}

struct Task<T, F> {
    work: F,
    result: Result<T, Error>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Error> + Send> Work for Task<T, F> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, connection: &Connection) -> bool {
        let worked = catch_unwind(AssertUnwindSafe(|| (self.work)(connection)));
        self.result = worked.unwrap_or_else(|_| Err(Error::Engine("the write panicked".into())));
        self.result.is_ok()
    }

    fn fail(&mut self, error: Error) {
        self.result = Err(error);
    }

    fn reply(self: Box<Self>) {
        // The caller may have stopped waiting.
        let _sent = self.reply.send(self.result);
    }
}

/// The result of a shared transaction.
enum BatchOutcome {
    Committed,
    /// It was rolled back as a whole.
    Undone,
    /// It could not begin, since another process writes.
    Busy,
    /// It could not begin, since the log is full.
    NoRoom(WalFullError),
}

struct WriterThread {
    connection: Connection,
    log: Wal,
    queue: mpsc::Receiver<WriteCommand>,
    counters: Arc<WriteCounters>,
    busy: Duration,
    /// Runs after the current transaction.
    exclusive: Option<ExclusiveWork>,
    stopped: Option<oneshot::Sender<()>>,
}

impl WriterThread {
    fn serve(mut self) -> Option<oneshot::Sender<()>> {
        while self.stopped.is_none()
            && let Some(order) = self.queue.blocking_recv()
        {
            let mut works: Vec<_> = self.accept(order).into_iter().collect();
            match self.run_batch(&mut works) {
                BatchOutcome::Committed => {}
                BatchOutcome::NoRoom(error) => {
                    works.iter_mut().for_each(|work| work.fail(Error::Full(error.into())))
                }
                // Each of them would wait as long again.
                BatchOutcome::Busy => works.iter_mut().for_each(|work| work.fail(Error::Busy(self.busy))),
                // No caller has an answer yet. One by one, only those fail that fail alone.
                BatchOutcome::Undone => works.iter_mut().for_each(|work| self.run_single(&mut **work)),
            }
            works.into_iter().for_each(Work::reply);
            self.log.after_commit(&self.connection, self.busy);
            if let Some(alone) = self.exclusive.take() {
                alone(&mut self.connection);
            }
        }
        self.stopped
    }

    /// The write in a command, if its caller still waits.
    fn accept(&mut self, order: WriteCommand) -> Option<Box<dyn Work>> {
        match order {
            WriteCommand::Write(work) => Some(work).filter(|work| !work.is_abandoned()),
            WriteCommand::Exclusive(alone) => {
                self.exclusive = Some(alone);
                None
            }
            WriteCommand::Stop(stopped) => {
                self.stopped = Some(stopped);
                None
            }
        }
    }

    /// Executes a write, and all that arrive meanwhile, in one transaction.
    fn run_batch(&mut self, works: &mut Vec<Box<dyn Work>>) -> BatchOutcome {
        if works.is_empty() {
            return BatchOutcome::Committed;
        }
        if let Err(error) = self.log.check_room(&self.connection, self.busy) {
            return BatchOutcome::NoRoom(error);
        }
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            return if matches!(self.map_error(error), Error::Busy(_)) {
                BatchOutcome::Busy
            } else {
                BatchOutcome::Undone
            };
        }
        let (mut next, mut succeeded) = (0, 0);
        while let Some(work) = works.get_mut(next) {
            match run_in_savepoint(&self.connection, &mut **work) {
                Some(done) => succeeded += u64::from(done),
                None => return BatchOutcome::Undone,
            }
            next += 1;
            while works.len() < MAX_SHARED && self.stopped.is_none() && self.exclusive.is_none() {
                let Ok(order) = self.queue.try_recv() else { break };
                works.extend(self.accept(order));
            }
        }
        if self.commit().is_err() {
            return BatchOutcome::Undone;
        }
        self.count(succeeded);
        BatchOutcome::Committed
    }

    fn run_single(&mut self, work: &mut dyn Work) {
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            return work.fail(self.map_error(error));
        }
        if !work.run(&self.connection) {
            return self.roll_back();
        }
        match self.commit() {
            Ok(()) => self.count(1),
            Err(error) => work.fail(self.map_error(error)),
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn commit(&self) -> rusqlite::Result<()> {
        self.execute("COMMIT").inspect_err(|_| self.roll_back())
    }

    /// After some errors SQLite has rolled back already.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a transaction cannot be undone");
        }
    }

    fn count(&self, writes: u64) {
        self.counters.writes.fetch_add(writes, Ordering::Relaxed);
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
    }

    fn map_error(&self, error: rusqlite::Error) -> Error {
        match super::error::failed(error) {
            Error::Busy(_) => Error::Busy(self.busy),
            other => other,
        }
    }
}

/// Executes one write of several: `Some` says whether it succeeded, `None` that the whole transaction was
/// rolled back.
fn run_in_savepoint(connection: &Connection, work: &mut dyn Work) -> Option<bool> {
    let execute = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
    let lost = |_: rusqlite::Error| {
        if !connection.is_autocommit() {
            // If this fails too, the next BEGIN fails and reports it.
            let _undone: rusqlite::Result<()> = execute("ROLLBACK");
        }
    };
    execute("SAVEPOINT write").map_err(lost).ok()?;
    let done = work.run(connection);
    if connection.is_autocommit() {
        return None;
    }
    if !done {
        execute("ROLLBACK TO write").map_err(lost).ok()?;
    }
    execute("RELEASE write").map_err(lost).ok()?;
    Some(done)
}
