//! Coalesces the writes of one turn of a connection's task.
//!
//! h2 writes every DATA frame to the socket separately: two writes for each answer. Measured, they are a
//! fifth of what a small call costs a plugin, and each of them wakes the host. So small writes are buffered
//! until the connection's task reports the end of its turn: answers of calls that end at the same time go out
//! together, and nothing waits for a timer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::write_buffer::WriteBuffer;

/// A connection that buffers small writes, for h2. Only one task locks it, so there is no contention.
#[derive(Debug)]
pub struct TurnWriter<S>(Arc<Mutex<WriteBuffer<S>>>);

/// The same connection, for the task that knows when a turn ends.
#[derive(Debug)]
pub struct TurnFlusher<S>(Arc<Mutex<WriteBuffer<S>>>);

/// Buffers what is written to a connection until the turn ends.
pub fn coalesce_turns<S>(stream: S) -> (TurnWriter<S>, TurnFlusher<S>) {
    let shared = Arc::new(Mutex::new(WriteBuffer::new(stream)));
    (TurnWriter(shared.clone()), TurnFlusher(shared))
}

impl<S> TurnFlusher<S> {
    /// Whether there is something to send.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.0.lock().pending() > 0
    }
}

impl<S: AsyncWrite + Unpin> TurnFlusher<S> {
    /// Sends what was written in this turn. When the socket is full, the task is woken once it is writable.
    ///
    /// # Errors
    /// The connection's.
    pub fn poll_flush_turn(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_empty(cx)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TurnWriter<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The buffer is sent at the end of the turn: h2 flushes after every DATA frame.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TurnWriter<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_read(cx, into)
    }
}

#[cfg(test)]
#[path = "turn_writer_tests.rs"]
mod tests;
