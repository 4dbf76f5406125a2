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

use crate::write_buffer::WriteBuffer;

/// A connection whose small writes are coalesced. It is made for HTTP/2 by the crate `h2`, or for tasks that
/// behave the same at each poll: they read until they would block, then write, and then flush, even if they
/// wrote nothing. A task that knows when its turn ends uses [`coalesce_turns`](crate::coalesce_turns).
#[derive(Debug)]
pub struct CoalescingWriter<S> {
    written: WriteBuffer<S>,
    timing: FlushTiming,
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
        Self { written: WriteBuffer::new(stream), timing: FlushTiming::NotRequested }
    }

    /// Never buffers: where the other layer coalesces already.
    #[must_use]
    pub fn passthrough(stream: S) -> Self {
        Self { written: WriteBuffer::passthrough(stream), timing: FlushTiming::NotRequested }
    }

    fn forget_sent(&mut self) {
        if self.written.pending() == 0 {
            self.timing = FlushTiming::NotRequested;
        }
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
        self.written.poll_read(cx, to)
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
        let written = self.written.poll_write(cx, from);
        self.forget_sent();
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.written.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.timing {
            _ if self.written.pending() == 0 => {}
            FlushTiming::NotRequested => {
                self.timing = FlushTiming::NextPoll;
                cx.waker().wake_by_ref();
                return Poll::Ready(Ok(()));
            }
            FlushTiming::NextPoll => return Poll::Ready(Ok(())),
            FlushTiming::Now => {
                ready!(self.written.poll_empty(cx))?;
                self.forget_sent();
            }
        }
        Pin::new(&mut self.written.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.written.poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "coalescing_tests.rs"]
mod tests;
