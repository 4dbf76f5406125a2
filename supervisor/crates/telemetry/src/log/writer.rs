//! A bounded queue in front of the log output, and the thread that empties it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

use super::line::Line;
use super::output::LogOutput;
use super::queue_entry::QueueEntry;

/// The size limit of the queue: seconds of a busy log, and little compared to the rest of the process. Above
/// it lines are dropped and counted.
pub(crate) const MAX_QUEUED_BYTES: usize = 4 << 20;
/// How long the end of the process waits for an output that does not accept the remaining lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// One counter for the process, because there is one log.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// The number of lines of this process's log that were dropped because the output was too slow.
#[must_use]
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Queues lines for the writer thread.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: Arc<Queue>,
}

/// Flushes the log when it is dropped.
#[must_use = "what is still queued is lost without it"]
pub(crate) struct FlushGuard {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    more: Condvar,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    entries: VecDeque<(usize, QueueEntry)>,
    bytes: usize,
    dropped: u64,
    writing: bool,
}

impl Queue {
    fn push(&self, bytes: usize, entry: impl FnOnce() -> QueueEntry) {
        let mut state = self.state.lock();
        if state.bytes + bytes > MAX_QUEUED_BYTES {
            state.dropped += 1;
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.bytes += bytes;
        state.entries.push_back((bytes, entry()));
        drop(state);
        self.more.notify_one();
    }

    /// The next line, or the number of dropped lines once the queue is empty.
    fn next(&self) -> QueueEntry {
        let mut state = self.state.lock();
        state.writing = false;
        loop {
            if let Some((bytes, entry)) = state.entries.pop_front() {
                state.bytes -= bytes;
                state.writing = true;
                return entry;
            }
            if state.dropped > 0 {
                state.writing = true;
                return QueueEntry::Dropped(std::mem::take(&mut state.dropped));
            }
            self.idle.notify_all();
            self.more.wait(&mut state);
        }
    }

    fn flush(&self, timeout: Duration) {
        let mut state = self.state.lock();
        let busy = |state: &mut State| state.writing || !state.entries.is_empty() || state.dropped > 0;
        // Lines that are not written in time are lost, so that the process can end.
        let _ = self.idle.wait_while_for(&mut state, busy, timeout);
    }
}

/// Starts the writer thread.
pub(crate) fn start(mut outlet: LogOutput) -> io::Result<(Writer, FlushGuard)> {
    let queue = Arc::new(Queue::default());
    let thread = Arc::clone(&queue);
    std::thread::Builder::new().name("talon-log".to_owned()).spawn(move || {
        loop {
            outlet.write(thread.next());
        }
    })?;
    Ok((Writer { queue: Arc::clone(&queue) }, FlushGuard { queue }))
}

impl Writer {
    pub(crate) fn line(&self, line: Line) {
        self.queue.push(line.bytes(), || QueueEntry::Line(Box::new(line)));
    }
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.queue.flush(FLUSH_TIMEOUT);
    }
}

impl Write for &Writer {
    /// The subscriber writes an event's whole line at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.push(line.len(), || QueueEntry::Text(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Writer {
    type Writer = &'a Writer;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
