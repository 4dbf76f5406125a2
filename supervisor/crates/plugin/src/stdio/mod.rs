//! Reads the output of a plugin until its process is gone.
//!
//! A pipe without a reader blocks the plugin. Reading to the end of a pipe would block us as long as any
//! descendant holds it. So both pipes are read line by line from the first byte, and closed once the process
//! is gone.

mod classify;
mod lines;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_sanitize::{Raw, Sanitized, sanitized};
use tokio::net::unix::pipe;

pub(crate) use classify::Classifier;
pub(crate) use lines::{Line, LineSplitter};

use crate::logs::{LogSink, Stream};

/// The read size for a plugin that writes much: the capacity of a pipe.
const CHUNK_BYTES: usize = 64 << 10;

/// The initial read size. Most plugins write a line now and then, and each of them has two pipes.
const FIRST_CHUNK_BYTES: usize = 2 << 10;

/// The pause after a chunk with dropped lines. At 64 KiB a chunk it limits reading to about 6 MB a second,
/// which costs a few hundredths of a core.
const FLOOD_PAUSE: Duration = Duration::from_millis(10);

/// How much is read after the process is gone: the content of a full pipe, and room for a pipe that was
/// enlarged.
const LAST_BYTES: usize = 1 << 20;

/// How many last lines are kept for the message about a failed start, and their length.
const MAX_LAST_LINES: usize = 5;
const MAX_LAST_LINE_BYTES: usize = 400;

/// The last lines of one process, for the message about a failed start. They are kept unsanitized, because a
/// flood brings many lines and most are never used.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines(Arc<Mutex<VecDeque<Raw<'static>>>>);

impl LastLines {
    fn push(&self, mut text: Raw<'_>) {
        if text.is_empty() {
            return;
        }
        let mut lines = self.0.lock();
        if lines.len() == MAX_LAST_LINES {
            lines.pop_front();
        }
        text.truncate(MAX_LAST_LINE_BYTES);
        lines.push_back(text.into_owned());
    }

    /// The lines joined into one, or `None`.
    pub(crate) fn joined(&self) -> Option<Sanitized> {
        let lines = self.0.lock();
        (!lines.is_empty()).then(|| Sanitized::join(lines.iter().map(Raw::line), " / "))
    }
}

/// Logs one output stream of a plugin.
pub(crate) struct StreamLogger {
    sink: LogSink,
    instance: u32,
    stream: Stream,
    classifier: Classifier,
    last_lines: LastLines,
    /// Whether a line was dropped since [`StreamLogger::throttle`].
    dropped: bool,
}

impl StreamLogger {
    pub(crate) fn new(sink: LogSink, instance: u32, stream: Stream, last_lines: LastLines) -> Self {
        Self { sink, instance, stream, classifier: Classifier::default(), last_lines, dropped: false }
    }

    /// Logs one line.
    pub(crate) fn log_line(&mut self, line: &Line<'_>) {
        let limit = self.sink.line_bytes();
        let Self { sink, instance, stream, classifier, last_lines: last_words, dropped } = self;
        let logged = sink.line(*instance, *stream, line.bytes.len(), || {
            let (level, text) = classifier.classify(Raw::from_bytes(line.bytes), limit);
            let text = match line.cut {
                0 => text,
                cut => sanitized!("{} … ({} more bytes cut off)", text, cut),
            };
            last_words.push(Raw::from(text.as_str()));
            (level, text)
        });
        if !logged {
            *dropped = true;
            // The last lines are useful even if they exceed the rate.
            if !line.bytes.is_empty() {
                let start = &line.bytes[..line.bytes.len().min(MAX_LAST_LINE_BYTES)];
                last_words.push(Raw::from_bytes(start));
            }
        }
    }

    /// Logs a chunk of output.
    pub(crate) fn log_chunk(&mut self, splitter: &mut LineSplitter, bytes: &[u8]) {
        splitter.push(bytes, &mut |line| self.log_line(&line));
    }

    /// Yields to other tasks. If lines were dropped since the last call, it sleeps for a moment: a plugin
    /// that exceeds its rate is read more slowly and blocks on its pipe, instead of costing us work.
    pub(crate) async fn throttle(&mut self) {
        if std::mem::take(&mut self.dropped) {
            tokio::time::sleep(FLOOD_PAUSE).await;
        } else {
            tokio::task::yield_now().await;
        }
    }

    /// Logs the incomplete last line and the number of dropped lines.
    pub(crate) fn finish(&mut self, splitter: &mut LineSplitter) {
        if let Some(line) = splitter.rest() {
            self.log_line(&line);
        }
        self.sink.report_dropped(self.instance);
    }
}

/// Logs a stream that may end at any time. Dropping this logs the incomplete last line.
pub(crate) struct StreamLogGuard<'s> {
    logger: &'s mut StreamLogger,
    splitter: LineSplitter,
}

impl<'s> StreamLogGuard<'s> {
    pub(crate) fn new(logger: &'s mut StreamLogger, line_bytes: usize) -> Self {
        Self { logger, splitter: LineSplitter::new(line_bytes) }
    }

    /// Logs a chunk of output.
    pub(crate) fn log_chunk(&mut self, bytes: &[u8]) {
        self.logger.log_chunk(&mut self.splitter, bytes);
    }

    /// See [`StreamLogger::throttle`].
    pub(crate) async fn throttle(&mut self) {
        self.logger.throttle().await;
    }
}

impl Drop for StreamLogGuard<'_> {
    fn drop(&mut self) {
        self.logger.finish(&mut self.splitter);
    }
}

/// The reading end of a pipe, with its buffer.
pub(crate) struct PipeReader {
    pipe: Arc<pipe::Receiver>,
    chunk: Vec<u8>,
}

/// Shares the pipe, so that it can be passed to another supervisor with its process.
#[derive(Debug, Clone)]
pub(crate) struct SharedPipe(Arc<pipe::Receiver>);

impl SharedPipe {
    /// A duplicate of our end.
    pub(crate) fn duplicate_fd(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }
}

impl PipeReader {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        let pipe = Arc::new(pipe::Receiver::from_owned_fd(fd)?);
        Ok(Self { pipe, chunk: Vec::new() })
    }

    /// A shared handle on the pipe.
    pub(crate) fn shared(&self) -> SharedPipe {
        SharedPipe(self.pipe.clone())
    }

    /// The next bytes; empty at the end. Cancel-safe.
    pub(crate) async fn read(&mut self) -> io::Result<&[u8]> {
        let read = read_some(&self.pipe, &mut self.chunk).await?;
        Ok(&self.chunk[..read])
    }

    /// Reads until the pipe ends or `gone` resolves, then reads the rest of its content without waiting.
    pub(crate) async fn drain(
        mut self,
        mut splitter: LineSplitter,
        mut scribe: StreamLogger,
        gone: impl Future<Output = ()>,
    ) {
        tokio::pin!(gone);
        // Frees the buffer of the handshake: most plugins write nothing more for a long time.
        self.chunk = Vec::new();
        loop {
            let read = tokio::select! {
                biased;
                () = &mut gone => break,
                read = read_some(&self.pipe, &mut self.chunk) => read,
            };
            match read {
                Ok(0) | Err(_) => {
                    scribe.finish(&mut splitter);
                    return;
                }
                Ok(read) => {
                    scribe.log_chunk(&mut splitter, &self.chunk[..read]);
                    if read < FIRST_CHUNK_BYTES && self.chunk.len() == FIRST_CHUNK_BYTES {
                        // Frees the buffer: the plugin may be silent for days, and each process has two
                        // pipes.
                        self.chunk = Vec::new();
                    }
                }
            }
            tokio::select! {
                biased;
                () = &mut gone => break,
                () = scribe.throttle() => {}
            }
        }
        let mut left = LAST_BYTES;
        make_room(&mut self.chunk);
        while left > 0 {
            // Bypasses tokio, which does not know yet whether the pipe is readable.
            match rustix::io::read(self.pipe.as_fd(), &mut self.chunk[..]) {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    scribe.log_chunk(&mut splitter, &self.chunk[..read]);
                    left = left.saturating_sub(read);
                }
            }
        }
        scribe.finish(&mut splitter);
    }
}

/// Allocates the buffer, if there is none.
fn make_room(chunk: &mut Vec<u8>) {
    if chunk.is_empty() {
        chunk.resize(FIRST_CHUNK_BYTES, 0);
    }
}

/// Reads the available bytes; none at the end. Cancel-safe.
async fn read_some(pipe: &pipe::Receiver, chunk: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        pipe.readable().await?;
        make_room(chunk);
        match pipe.try_read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(read) if read == chunk.len() => {
                // There is more than fits; the next read takes it at once.
                chunk.resize(CHUNK_BYTES, 0);
                return Ok(read);
            }
            read => return read,
        }
    }
}

#[cfg(test)]
mod tests;
