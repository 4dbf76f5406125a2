//! The arguments of a tool call as the client wrote them.
//!
//! The library holds numbers as floats and so loses digits of large ones. [`LineTap`] stands in front of it,
//! keeps the arguments' text of each `tools/call`, and passes every byte on.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use rmcp::model::{CallToolRequestParams, RequestId};
use talon_arguments::{Arguments, member};
use tokio::io::{AsyncRead, ReadBuf};

/// How much is read at once.
const CHUNK_BYTES: usize = 8 << 10;
/// Calls whose text was seen and that were not handed over yet. The library reads a line ahead at most; what
/// is more are lines that it did not take for calls.
const MAX_SEEN: usize = 8;

/// The arguments of one call as text, in the extensions of its request.
#[derive(Debug, Clone)]
pub(crate) struct RawArguments(pub(crate) Arc<str>);

/// The arguments of a call as JSON text: as the client wrote them, if that is known. Empty: it has none.
pub(crate) fn to_json(params: &CallToolRequestParams, raw: Option<&RawArguments>) -> String {
    match (raw, &params.arguments) {
        (Some(raw), Some(_)) => raw.0.to_string(),
        (None, Some(arguments)) => Arguments::of(arguments).to_json(),
        (_, None) => String::new(),
    }
}

/// A call, and the text of its arguments.
type SeenCall = (RequestId, Arc<str>);

/// The texts of calls' arguments, in the order of their lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeenArguments(Arc<Mutex<VecDeque<SeenCall>>>);

impl SeenArguments {
    /// The text of the call with this id; earlier ones are dropped, since their lines were no calls.
    pub(crate) fn take(&self, id: &RequestId) -> Option<RawArguments> {
        let mut seen = self.0.lock();
        let place = seen.iter().position(|(of, _)| of == id)?;
        seen.drain(..=place).next_back().map(|(_, text)| RawArguments(text))
    }

    fn see(&self, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        if member(line, "method") != Some("\"tools/call\"") {
            return;
        }
        let id = member(line, "id").and_then(|id| serde_json::from_str(id).ok());
        let arguments = member(line, "params").and_then(|params| member(params, "arguments"));
        if let (Some(id), Some(arguments)) = (id, arguments) {
            let mut seen = self.0.lock();
            if seen.len() == MAX_SEEN {
                seen.pop_front();
            }
            seen.push_back((id, arguments.into()));
        }
    }
}

/// Passes lines on whole, each after its arguments were kept. A line over the limit is passed on unseen.
pub(crate) struct LineTap<R> {
    input: R,
    max_line_bytes: usize,
    seen: SeenArguments,
    buffer: Vec<u8>,
    /// How much of the buffer was passed on.
    passed: usize,
    /// How much of it may be passed on.
    free: usize,
    /// How much of it was searched for the end of a line.
    searched: usize,
    /// The current line is over the limit.
    is_oversized: bool,
}

impl<R> LineTap<R> {
    pub(crate) fn new(input: R, max_line_bytes: usize, seen: SeenArguments) -> Self {
        Self {
            input,
            max_line_bytes,
            seen,
            buffer: Vec::new(),
            passed: 0,
            free: 0,
            searched: 0,
            is_oversized: false,
        }
    }

    /// Frees the next line, if it is whole or too long.
    fn free_next(&mut self, is_end: bool) {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        self.free = match end.map(|end| self.searched + end) {
            Some(end) => {
                if !self.is_oversized {
                    self.seen.see(&self.buffer[self.free..end]);
                }
                self.is_oversized = false;
                end + 1
            }
            None if self.buffer.len() - self.free > self.max_line_bytes || self.is_oversized => {
                self.is_oversized = true;
                self.buffer.len()
            }
            None if is_end => self.buffer.len(),
            None => {
                self.searched = self.buffer.len();
                return;
            }
        };
        self.searched = self.free;
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineTap<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.passed == this.free {
                this.free_next(false);
            }
            if this.passed < this.free {
                let end = this.free.min(this.passed + out.remaining());
                out.put_slice(&this.buffer[this.passed..end]);
                this.passed = end;
                if this.passed == this.free {
                    this.buffer.drain(..this.free);
                    (this.passed, this.free, this.searched) = (0, 0, 0);
                    // What one long line needed is not kept for ever.
                    this.buffer.shrink_to(CHUNK_BYTES.max(this.buffer.len()));
                }
                return Poll::Ready(Ok(()));
            }
            let mut chunk = [0; CHUNK_BYTES];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.input).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                this.free_next(true);
                if this.passed == this.free {
                    return Poll::Ready(Ok(()));
                }
            }
            this.buffer.extend_from_slice(read.filled());
        }
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
