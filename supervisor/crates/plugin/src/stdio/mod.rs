//! Reads what a plugin prints, for as long as it lives and not a moment longer.
//!
//! A pipe that nobody reads blocks the plugin, and a pipe that is read to its end blocks us for as long as any
//! grandchild holds it. So both are read line by line from the first byte, and given up when the process is gone.

mod classify;
mod lines;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talon_sanitize::{Raw, Sanitized, inert};
use tokio::net::unix::pipe;

pub(crate) use classify::Classifier;
pub(crate) use lines::{Line, Splitter};

use crate::logs::{LogSink, Stream};

/// How much is read at once of a plugin that writes much: a pipe holds this much.
const CHUNK_BYTES: usize = 64 << 10;

/// How much is read at once until then. Most plugins say a line now and then, and each has two pipes.
const FIRST_CHUNK_BYTES: usize = 2 << 10;

/// After a chunk in which lines were dropped. At 64 KiB a chunk some 6 MB a second are still read of a plugin that
/// floods its log, for which a few hundredths of a core do.
const FLOOD_PAUSE: Duration = Duration::from_millis(10);

/// How much is still read once the process is gone: what a full pipe holds, and room for one that was enlarged.
const LAST_BYTES: usize = 1 << 20;

/// How many last lines are kept for the message about a failed start, and how long they may be.
const LAST_WORDS_LINES: usize = 5;
const LAST_WORDS_BYTES: usize = 400;

/// The last lines of one process, for the message that says why it did not start. Kept as they came, because a flood
/// brings many and nobody asks for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<VecDeque<Raw<'static>>>>);

impl LastWords {
    fn push(&self, mut text: Raw<'_>) {
        if text.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_WORDS_LINES {
            lines.pop_front();
        }
        text.truncate(LAST_WORDS_BYTES);
        lines.push_back(text.into_owned());
    }

    /// The lines in one, or `None`.
    pub(crate) fn get(&self) -> Option<Sanitized> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!lines.is_empty()).then(|| Sanitized::joined(lines.iter().map(Raw::line), " / "))
    }
}

/// One of a plugin's streams on its way into the log.
pub(crate) struct Scribe {
    sink: LogSink,
    instance: u32,
    stream: Stream,
    classifier: Classifier,
    last_words: LastWords,
    /// Whether a line was dropped since [`Scribe::breathe`].
    dropped: bool,
}

impl Scribe {
    pub(crate) fn new(sink: LogSink, instance: u32, stream: Stream, last_words: LastWords) -> Self {
        Self { sink, instance, stream, classifier: Classifier::default(), last_words, dropped: false }
    }

    /// Logs one line.
    pub(crate) fn line(&mut self, line: &Line<'_>) {
        let limit = self.sink.line_bytes();
        let Self { sink, instance, stream, classifier, last_words, dropped } = self;
        let logged = sink.line(*instance, *stream, line.bytes.len(), || {
            let (level, text) = classifier.classify(Raw::from_bytes(line.bytes), limit);
            let text = match line.cut {
                0 => text,
                cut => inert!("{} … ({} more bytes cut off)", text, cut),
            };
            last_words.push(Raw::from(text.as_str()));
            (level, text)
        });
        if !logged {
            *dropped = true;
            // What a plugin says last is worth knowing also when it says too much.
            if !line.bytes.is_empty() {
                let start = &line.bytes[..line.bytes.len().min(LAST_WORDS_BYTES)];
                last_words.push(Raw::from_bytes(start));
            }
        }
    }

    /// Logs a chunk of output.
    pub(crate) fn chunk(&mut self, splitter: &mut Splitter, bytes: &[u8]) {
        splitter.push(bytes, &mut |line| self.line(&line));
    }

    /// Lets others have their turn, for a moment if lines were dropped since the last call: whoever writes more
    /// than it may is read more slowly, so that it waits instead of us working for nothing.
    pub(crate) async fn breathe(&mut self) {
        if std::mem::take(&mut self.dropped) {
            tokio::time::sleep(FLOOD_PAUSE).await;
        } else {
            tokio::task::yield_now().await;
        }
    }

    /// Logs what has no line end yet, and what was dropped.
    pub(crate) fn finish(&mut self, splitter: &mut Splitter) {
        if let Some(line) = splitter.rest() {
            self.line(&line);
        }
        self.sink.settle(self.instance);
    }
}

/// A stream whose end nobody may wait for: what has no line end yet is logged when it is let go of.
pub(crate) struct Flowing<'s> {
    scribe: &'s mut Scribe,
    splitter: Splitter,
}

impl<'s> Flowing<'s> {
    pub(crate) fn new(scribe: &'s mut Scribe, line_bytes: usize) -> Self {
        Self { scribe, splitter: Splitter::new(line_bytes) }
    }

    /// Logs a chunk of output.
    pub(crate) fn chunk(&mut self, bytes: &[u8]) {
        self.scribe.chunk(&mut self.splitter, bytes);
    }

    /// See [`Scribe::breathe`].
    pub(crate) async fn breathe(&mut self) {
        self.scribe.breathe().await;
    }
}

impl Drop for Flowing<'_> {
    fn drop(&mut self) {
        self.scribe.finish(&mut self.splitter);
    }
}

/// A pipe and what was read of it.
pub(crate) struct PipeReader {
    pipe: Arc<pipe::Receiver>,
    chunk: Vec<u8>,
}

/// The pipe itself, for as long as its process may be handed over to another supervisor.
#[derive(Debug, Clone)]
pub(crate) struct SharedPipe(Arc<pipe::Receiver>);

impl SharedPipe {
    /// A duplicate of our end.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }
}

impl PipeReader {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        let pipe = Arc::new(pipe::Receiver::from_owned_fd(fd)?);
        Ok(Self { pipe, chunk: Vec::new() })
    }

    /// What it reads.
    pub(crate) fn shared(&self) -> SharedPipe {
        SharedPipe(self.pipe.clone())
    }

    /// The next bytes; empty at the end. Cancel-safe.
    pub(crate) async fn read(&mut self) -> io::Result<&[u8]> {
        let read = read_some(&self.pipe, &mut self.chunk).await?;
        Ok(&self.chunk[..read])
    }

    /// Reads until the pipe ends or `gone` resolves, then what is left in it without waiting.
    pub(crate) async fn drain(
        mut self,
        mut splitter: Splitter,
        mut scribe: Scribe,
        gone: impl Future<Output = ()>,
    ) {
        tokio::pin!(gone);
        // What a handshake was read to: most plugins say nothing more for long.
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
                    scribe.chunk(&mut splitter, &self.chunk[..read]);
                    if read < FIRST_CHUNK_BYTES && self.chunk.len() == FIRST_CHUNK_BYTES {
                        // It may be silent for days, and there are two pipes a process.
                        self.chunk = Vec::new();
                    }
                }
            }
            tokio::select! {
                biased;
                () = &mut gone => break,
                () = scribe.breathe() => {}
            }
        }
        let mut left = LAST_BYTES;
        make_room(&mut self.chunk);
        while left > 0 {
            // Past tokio, which does not know yet whether there is anything to read.
            match rustix::io::read(self.pipe.as_fd(), &mut self.chunk[..]) {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    scribe.chunk(&mut splitter, &self.chunk[..read]);
                    left = left.saturating_sub(read);
                }
            }
        }
        scribe.finish(&mut splitter);
    }
}

/// What has something to read gets somewhere to read it to.
fn make_room(chunk: &mut Vec<u8>) {
    if chunk.is_empty() {
        chunk.resize(FIRST_CHUNK_BYTES, 0);
    }
}

/// As many bytes as there are; none at the end. Cancel-safe.
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
