//! Coalesces small writes into one.
//!
//! Our HTTP/2 library writes an answer's headers with its message, and its end separately; and a request's
//! headers, then its message. Each write is a system call, and wakes the other end, which finds only half of
//! what it waits for. So small writes are buffered until the connection's task is polled the next time, which
//! is requested at once, and are then sent together. Under load that covers all calls that wrote in between.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum size of the buffer. For larger writes a system call costs less than the copy. Buffered data is
/// invisible to the other end's flow control, so it must not be much.
const MAX_BUFFERED_BYTES: usize = 16 << 10;

/// A connection whose small writes are coalesced. It is made for HTTP/2 by the crate `h2`, or for tasks that
/// behave the same at each poll: they read until they would block, then write, and then flush, even if they
/// wrote nothing.
#[derive(Debug)]
pub struct CoalescingWriter<S> {
    stream: S,
    buffer: Vec<u8>,
    /// How much of the buffer was sent already.
    sent: usize,
    timing: FlushTiming,
    /// [`MAX_BUFFERED_BYTES`], or 0.
    max_buffered_bytes: usize,
}

/// When the buffer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushTiming {
    /// No flush was requested.
    NotRequested,
    /// At the next poll of the task.
    NextPoll,
    /// At the end of this poll.
    Now,
}

impl<S> CoalescingWriter<S> {
    /// A writer with an empty buffer.
    #[must_use]
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            sent: 0,
            timing: FlushTiming::NotRequested,
            max_buffered_bytes: MAX_BUFFERED_BYTES,
        }
    }

    /// Never buffers: where the other layer coalesces already.
    #[must_use]
    pub fn passthrough(stream: S) -> Self {
        Self { max_buffered_bytes: 0, ..Self::new(stream) }
    }

    /// The connection itself.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncWrite + Unpin> CoalescingWriter<S> {
    fn fits(&self, bytes: usize) -> bool {
        self.buffer.len() + bytes <= self.max_buffered_bytes
    }

    fn poll_write_buffer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.buffer.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.buffer[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
        }
        self.buffer.clear();
        self.sent = 0;
        self.timing = FlushTiming::NotRequested;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CoalescingWriter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.timing == FlushTiming::NextPoll {
            self.timing = FlushTiming::Now;
        }
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CoalescingWriter<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(from)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = from.iter().map(|piece| piece.len()).sum();
        if !self.fits(bytes) {
            ready!(self.poll_write_buffer(cx))?;
        }
        if !self.fits(bytes) {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        }
        from.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.timing {
            _ if self.buffer.is_empty() => {}
            FlushTiming::NotRequested => {
                self.timing = FlushTiming::NextPoll;
                cx.waker().wake_by_ref();
                return Poll::Ready(Ok(()));
            }
            FlushTiming::NextPoll => return Poll::Ready(Ok(())),
            FlushTiming::Now => ready!(self.poll_write_buffer(cx))?,
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_buffer(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "coalescing_tests.rs"]
mod tests;
