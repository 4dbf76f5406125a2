//! A bounded queue in front of stderr.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use super::{Format, inert};

/// How much may wait: seconds of a busy log, and nothing beside the rest of the process. Above it lines are dropped
/// and counted.
const MAX_QUEUED_BYTES: usize = 4 << 20;
/// How long the end of the process waits for a stderr that does not take what is left.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Hands lines to the writing thread.
#[derive(Clone)]
pub(super) struct Writer {
    queue: Arc<Queue>,
}

/// Flushes the log when it is dropped.
#[must_use = "what is still queued is lost without it"]
pub struct FlushGuard {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    more: Condvar,
    idle: Condvar,
    format: Format,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    dropped: u64,
    writing: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not take the log along.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.bytes + line.len() > MAX_QUEUED_BYTES {
            state.dropped += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line.to_vec());
        drop(state);
        self.more.notify_one();
    }

    /// The next line, or word of those that were dropped once there is room again.
    fn next(&self) -> Vec<u8> {
        let mut state = self.lock();
        state.writing = false;
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.writing = true;
                return line;
            }
            if state.dropped > 0 {
                state.writing = true;
                return dropped_line(self.format, std::mem::take(&mut state.dropped));
            }
            self.idle.notify_all();
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn flush(&self, timeout: Duration) {
        let state = self.lock();
        let busy = |state: &mut State| state.writing || !state.lines.is_empty() || state.dropped > 0;
        // What stderr does not take in time is lost: the end of the process is worth more.
        let _ = self.idle.wait_timeout_while(state, timeout, busy);
    }
}

fn dropped_line(format: Format, count: u64) -> Vec<u8> {
    let text = format!("{count} log lines were dropped: stderr is read too slowly");
    match format {
        Format::Text => format!("WARN talon: {text}\n"),
        Format::Json => {
            format!("{}\n", serde_json::json!({ "level": "WARN", "target": "talon", "message": text }))
        }
    }
    .into_bytes()
}

/// Starts the thread that writes to stderr.
pub(super) fn start(format: Format, color: bool) -> io::Result<(Writer, FlushGuard)> {
    let queue =
        Arc::new(Queue { state: Mutex::default(), more: Condvar::new(), idle: Condvar::new(), format });
    let thread = Arc::clone(&queue);
    std::thread::Builder::new().name("talon-log".to_owned()).spawn(move || {
        loop {
            let line = inert::line(thread.next(), format, color);
            // A closed or full stderr has nobody to hear about it.
            let _ = io::stderr().lock().write_all(&line);
        }
    })?;
    Ok((Writer { queue: Arc::clone(&queue) }, FlushGuard { queue }))
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.queue.flush(FLUSH_TIMEOUT);
    }
}

impl Write for &Writer {
    /// The subscriber writes an event's whole line at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.queue.push(line);
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
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue { state: Mutex::default(), more: Condvar::new(), idle: Condvar::new(), format: Format::Text }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_said_after_the_rest() {
        let queue = queue();
        let large = vec![b'x'; MAX_QUEUED_BYTES];
        queue.push(&large);
        queue.push(b"lost\n");
        queue.push(b"lost too\n");
        assert_eq!(queue.next().len(), MAX_QUEUED_BYTES);
        assert!(String::from_utf8(queue.next()).unwrap().contains("2 log lines were dropped"));
        queue.push(b"after\n");
        assert_eq!(queue.next(), b"after\n");
    }

    #[test]
    fn a_flush_of_an_idle_queue_returns() {
        queue().flush(FLUSH_TIMEOUT);
    }
}
