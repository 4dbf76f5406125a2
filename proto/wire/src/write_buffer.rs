//! The bytes that wait for one write, in front of a connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that are buffered before they are sent: enough for sixty answers of 1 KiB. Buffered bytes
/// are invisible to the other end's flow control, so they must not be many.
pub(crate) const MAX_BUFFERED_BYTES: usize = 64 << 10;
/// From this size on, copying costs more than a separate write.
pub(crate) const DIRECT_BYTES: usize = 8 << 10;
/// How much capacity the buffer keeps between two bursts; an idle connection holds no more.
pub(crate) const IDLE_CAPACITY_BYTES: usize = 8 << 10;
/// Slices in one write: h2 sends a head and a payload.
const SLICES: usize = 8;

/// A connection and what was written to it and not sent.
#[derive(Debug)]
pub(crate) struct WriteBuffer<S> {
    pub(crate) stream: S,
    pub(crate) buffer: Vec<u8>,
    /// How much of the buffer has been sent.
    sent: usize,
    /// Larger writes are not buffered: [`DIRECT_BYTES`], or 0.
    direct_from: usize,
}

impl<S> WriteBuffer<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), sent: 0, direct_from: DIRECT_BYTES }
    }

    /// A buffer that stays empty.
    pub(crate) fn passthrough(stream: S) -> Self {
        Self { direct_from: 0, ..Self::new(stream) }
    }

    /// How much waits to be sent.
    pub(crate) fn pending(&self) -> usize {
        self.buffer.len() - self.sent
    }

    /// Grows a buffer beyond its idle capacity at once: doubling would copy a burst nearly twice.
    fn make_room(&mut self, bytes: usize) {
        let needed = self.buffer.len() + bytes;
        if needed > self.buffer.capacity() && needed > IDLE_CAPACITY_BYTES {
            self.buffer.reserve_exact(MAX_BUFFERED_BYTES.max(needed) - self.buffer.len());
        }
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
    /// Buffers the slices if they are small and there is room; otherwise sends the buffer and them.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        if bytes < self.direct_from && self.pending() + bytes <= MAX_BUFFERED_BYTES {
            self.make_room(bytes);
            slices.iter().for_each(|slice| self.buffer.extend_from_slice(slice));
            return Poll::Ready(Ok(bytes));
        }
        self.poll_send(cx, slices)
    }

    /// Sends the buffer. When the socket is full, the task is woken once it is writable.
    pub(crate) fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx, &[]).map_ok(|_| ())
    }

    /// Sends the buffer, and closes the connection's half for writing.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_empty(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// Writes the buffer and then the slices; returns how much of the slices was written. Without slices, 0
    /// once all is sent.
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

impl<S: AsyncRead + Unpin> WriteBuffer<S> {
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}
