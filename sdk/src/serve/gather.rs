//! What is written to a host, gathered.
//!
//! h2 hands every frame of data to the socket by itself: two writes an answer, which measured are a fifth of what a small call
//! costs a plugin, and each of which wakes the host. So small writes are held until the connection's task has run once more,
//! right after what is ready now: the answers of calls that end at the same time go out together, and nothing waits for a timer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// So much is held at most; then it goes out. What sixty answers of 1 KiB need.
const HELD_BYTES: usize = 64 << 10;
/// From this size on copying costs more than a write of its own.
const DIRECT_BYTES: usize = 8 << 10;
/// Memory for so much is kept between two bursts; a plugin that does nothing holds no more.
const KEPT_BYTES: usize = 8 << 10;
/// Slices in one write: h2 has a head and a payload.
const SLICES: usize = 8;

/// A connection that holds small writes until its task comes back.
#[derive(Debug)]
pub(super) struct Gather<S> {
    stream: S,
    held: Vec<u8>,
    /// How much of it has gone out.
    sent: usize,
    /// Whether the task was told to come back.
    told: bool,
}

impl<S> Gather<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, held: Vec::new(), sent: 0, told: false }
    }

    fn waiting(&self) -> usize {
        self.held.len() - self.sent
    }

    fn hold(&mut self, cx: &Context<'_>, slices: &[IoSlice<'_>]) {
        slices.iter().for_each(|slice| self.held.extend_from_slice(slice));
        if !std::mem::replace(&mut self.told, true) {
            cx.waker().wake_by_ref();
        }
    }

    fn went_out(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.waiting() == 0 {
            self.sent = 0;
            self.held.clear();
            if self.held.capacity() > KEPT_BYTES {
                self.held = Vec::new();
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Gather<S> {
    /// Writes what is held and then the slices; says how much of the slices was written. Without slices, 0 once all is out.
    fn poll_send(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        while self.waiting() > 0 {
            let waiting = self.waiting();
            let mut all = [IoSlice::new(&[]); SLICES];
            all[0] = IoSlice::new(&self.held[self.sent..]);
            let count = slices.len().min(SLICES - 1);
            all[1..=count].copy_from_slice(&slices[..count]);
            let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &all[..=count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.went_out(written.min(waiting));
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Gather<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        if bytes < DIRECT_BYTES && this.waiting() + bytes <= HELD_BYTES {
            this.hold(cx, slices);
            return Poll::Ready(Ok(bytes));
        }
        this.poll_send(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// What is held goes out when the task comes back, of which it was told.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx, &[]))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Gather<S> {
    /// A connection's task reads first whenever it runs, so this is where it has come back.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.told = false;
        // Where there is no room, the task is woken when there is.
        if let Poll::Ready(Err(error)) = this.poll_send(cx, &[]) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut this.stream).poll_read(cx, into)
    }
}

impl<S> Connected for Gather<S> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
