//! The reader threads, each with its own connection.
//!
//! All take from one queue, so a long read blocks only its own thread. A thread that has finished takes the
//! next read without being woken; with many callers, waking threads is most of the cost of a read.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::error::Error;

/// How many reads are queued at most; further callers wait for room in the queue.
const MAX_WAITING: usize = 1024;

type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

/// The handle of the threads.
pub(super) struct ReaderPool {
    queue: Arc<Queue>,
    room: Arc<Semaphore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    reads: VecDeque<ReadJob>,
    closed: bool,
}

impl ReaderPool {
    pub(super) fn start(connections: Vec<Connection>) -> std::io::Result<Self> {
        let queue = Arc::<Queue>::default();
        let readers = Self {
            queue: Arc::clone(&queue),
            room: Arc::new(Semaphore::new(MAX_WAITING)),
            threads: Mutex::default(),
        };
        for connection in connections {
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new().name("talon-store-read".into());
            let thread = thread.spawn(move || {
                while let Some(read) = queue.next() {
                    read(&connection);
                }
            })?;
            readers.threads.lock().push(thread);
        }
        Ok(readers)
    }

    pub(super) async fn run<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| Error::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.queue.push(Box::new(move |connection| {
            drop(room);
            if !reply.is_closed() {
                let read = catch_unwind(AssertUnwindSafe(|| work(connection)));
                let result = read.unwrap_or_else(|_| Err(Error::Engine("the read panicked".into())));
                // The caller may have stopped waiting.
                let _sent = reply.send(result);
            }
        }));
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Stops the threads after their current reads.
    pub(super) async fn close(&self) {
        self.room.close();
        self.queue.close();
        let threads = std::mem::take(&mut *self.threads.lock());
        let ended = move || threads.into_iter().for_each(|thread| drop(thread.join()));
        // An error means that the runtime ends too.
        let _ended = tokio::task::spawn_blocking(ended).await;
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Queue {
    fn push(&self, read: ReadJob) {
        let mut state = self.state.lock();
        // If it is dropped here, its caller gets an error that the store is closed.
        if !state.closed {
            state.reads.push_back(read);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits for the next read; `None` when the store is closed.
    fn next(&self) -> Option<ReadJob> {
        let mut state = self.state.lock();
        loop {
            if let Some(read) = state.reads.pop_front() {
                return Some(read);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.reads.clear();
        self.changed.notify_all();
    }
}
