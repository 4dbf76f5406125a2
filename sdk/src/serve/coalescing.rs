//! A writer that coalesces small writes to a host.
//!
//! h2 writes every DATA frame to the socket separately: two writes for each answer. Measured, they are a fifth of what
//! a small call costs a plugin, and each of them wakes the host. So small writes are buffered until the connection's
//! task reports the end of its turn: answers of calls that end at the same time go out together, and nothing waits for
//! a timer.

use parking_lot::{Mutex, MutexGuard};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that are buffered before they are sent: enough for sixty answers of 1 KiB.
const MAX_BUFFERED_BYTES: usize = 64 << 10;
/// From this size on, copying costs more than a separate write.
const DIRECT_BYTES: usize = 8 << 10;
/// How much capacity the buffer keeps between two bursts; an idle plugin holds no more.
const IDLE_CAPACITY_BYTES: usize = 8 << 10;
/// Slices in one write: h2 sends a head and a payload.
const SLICES: usize = 8;

/// A connection that buffers small writes, for h2.
#[derive(Debug)]
pub(super) struct CoalescingWriter<S>(Arc<Mutex<WriteBuffer<S>>>);

/// The same connection, for the task that knows when a turn ends.
#[derive(Debug)]
pub(super) struct TurnFlusher<S>(Arc<Mutex<WriteBuffer<S>>>);

/// The state that both share.
#[derive(Debug)]
struct WriteBuffer<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How much of it has been sent.
    sent: usize,
}

/// Buffers what is written to a connection until the turn ends.
pub(super) fn coalesce<S>(stream: S) -> (CoalescingWriter<S>, TurnFlusher<S>) {
    let shared = Arc::new(Mutex::new(WriteBuffer { stream, buffer: Vec::new(), sent: 0 }));
    (CoalescingWriter(shared.clone()), TurnFlusher(shared))
}

impl<S> TurnFlusher<S> {
    /// Whether there is something to send.
    pub(super) fn has_pending(&self) -> bool {
        lock(&self.0).pending() > 0
    }
}

impl<S: AsyncWrite + Unpin> TurnFlusher<S> {
    /// Sends what was written in this turn. When the socket is full, the task is woken once it is writable.
    pub(super) fn poll_flush_turn(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_send(cx, &[]).map_ok(|_| ())
    }
}

/// Nothing panics while it is locked, and only one task locks it, so there is no contention.
fn lock<S>(shared: &Mutex<WriteBuffer<S>>) -> MutexGuard<'_, WriteBuffer<S>> {
    shared.lock()
}

impl<S> WriteBuffer<S> {
    fn pending(&self) -> usize {
        self.buffer.len() - self.sent
    }

    fn mark_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.pending() == 0 {
            self.sent = 0;
            self.buffer.clear();
            if self.buffer.capacity() > IDLE_CAPACITY_BYTES {
                self.buffer = Vec::new();
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> WriteBuffer<S> {
    /// Writes the buffer and then the slices; returns how much of the slices was written. Without slices, 0 once all is
    /// sent.
    fn poll_send(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        while self.pending() > 0 {
            let waiting = self.pending();
            let mut all = [IoSlice::new(&[]); SLICES];
            all[0] = IoSlice::new(&self.buffer[self.sent..]);
            let count = slices.len().min(SLICES - 1);
            all[1..=count].copy_from_slice(&slices[..count]);
            let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &all[..=count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.mark_sent(written.min(waiting));
            if written > waiting {
                return Poll::Ready(Ok(written - waiting));
            }
        }
        match slices {
            [] => Poll::Ready(Ok(0)),
            slices => Pin::new(&mut self.stream).poll_write_vectored(cx, slices),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CoalescingWriter<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut this = lock(&self.0);
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        if bytes < DIRECT_BYTES && this.pending() + bytes <= MAX_BUFFERED_BYTES {
            slices.iter().for_each(|slice| this.buffer.extend_from_slice(slice));
            return Poll::Ready(Ok(bytes));
        }
        this.poll_send(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The buffer is sent at the end of the turn: h2 flushes after every DATA frame.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.0).stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = lock(&self.0);
        ready!(this.poll_send(cx, &[]))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CoalescingWriter<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.0).stream).poll_read(cx, into)
    }
}

#[cfg(test)]
#[path = "coalescing_tests.rs"]
mod tests;
