//! A connection whose peer has a budget of frames.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::budget::{FrameBudget, FrameFloodError, FrameLimits};
use super::scanner::FrameScanner;

/// How many frames that cost something are read in one poll: a fraction of a millisecond. Then other tasks of
/// the thread come first.
pub const MAX_FRAMES_PER_POLL: u32 = 256;

/// The length of the HTTP/2 client preface.
const PREFACE_BYTES: usize = 24;

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionSide {
    /// The preface is sent.
    Client,
    /// The preface is received.
    Server,
}

/// A connection below h2, whose peer may not send [control frames without end](crate::frames). Beyond the
/// budget reading fails with an error that holds a [`FrameFloodError`]: h2 then ends the connection.
pub struct FrameLimited<S> {
    stream: S,
    received: FrameScanner,
    sent: FrameScanner,
    budget: FrameBudget,
    /// How many frames that cost something were read since reading last had to wait.
    in_this_poll: u32,
    on_flood: Option<OnFlood>,
}

type OnFlood = Box<dyn FnOnce(FrameFloodError) + Send + Sync>;

impl<S> FrameLimited<S> {
    /// The budget is full. `on_flood` is called at most once, before reading fails.
    pub fn new(
        stream: S,
        side: ConnectionSide,
        limits: FrameLimits,
        on_flood: impl FnOnce(FrameFloodError) + Send + Sync + 'static,
    ) -> Self {
        let (received, sent) = match side {
            ConnectionSide::Client => (0, PREFACE_BYTES),
            ConnectionSide::Server => (PREFACE_BYTES, 0),
        };
        Self {
            stream,
            received: FrameScanner::after(received),
            sent: FrameScanner::after(sent),
            budget: FrameBudget::new(limits, Instant::now()),
            in_this_poll: 0,
            on_flood: Some(Box::new(on_flood)),
        }
    }

    fn charge(&mut self, bytes: &[u8]) -> Result<(), FrameFloodError> {
        let Self { received, budget, in_this_poll, .. } = self;
        let mut outcome = Ok(());
        received.scan(bytes, |head| {
            if outcome.is_ok() {
                outcome = budget.received(head, Instant::now).map(|cost| *in_this_poll += u32::from(cost));
            }
        });
        outcome
    }

    fn note_sent(&mut self, slices: &[IoSlice<'_>], mut bytes: usize) {
        let Self { sent, budget, .. } = self;
        for slice in slices {
            let written = bytes.min(slice.len());
            sent.scan(&slice[..written], |head| budget.sent(head));
            bytes -= written;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameLimited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.in_this_poll >= MAX_FRAMES_PER_POLL {
            self.in_this_poll = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if read.is_pending() {
            self.in_this_poll = 0;
        }
        ready!(read)?;
        if let Err(flood) = self.charge(&into.filled()[before..]) {
            into.set_filled(before);
            if let Some(report) = self.on_flood.take() {
                report(flood);
            }
            return Poll::Ready(Err(io::Error::other(flood)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameLimited<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(from)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, from))?;
        self.note_sent(from, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: fmt::Debug> fmt::Debug for FrameLimited<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameLimited")
            .field("stream", &self.stream)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "limited_tests.rs"]
mod tests;
