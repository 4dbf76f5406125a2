//! A unix socket that waits for writability only while the socket is full.
//!
//! A runtime registers an open socket for writability as well as for readability. The kernel reports writability
//! whenever the peer has read something. So a host that reads an answer wakes the plugin, which finds nothing to do and
//! sleeps again: measured, half of the wakeups of a plugin with one caller. Here the socket is registered for
//! writability only while it is full.
//!
//! That pays under load. On an idle machine a single call is answered sooner the other way: a core that was woken for
//! nothing is still awake when the answer comes, and waking a sleeping core takes longer than the whole call. So a
//! connection does this only while it is [busy](Busy). Measured on two cores: with 64 calls at once, a fourth more of
//! them; with one call at a time, where the connection is not busy, half the time.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// A connected unix socket.
#[derive(Debug)]
pub(super) struct LazyWritable {
    /// The socket. The runtime treats the end of a pipe as read-only, which is how it registers for readability alone.
    reading: pipe::Receiver,
    /// The same socket again, registered for writability: while the socket is full, and while the connection is not
    /// busy.
    writing: Option<pipe::Sender>,
    busy: BusyFlag,
}

/// Whether a connection is busy. Clones share the value.
#[derive(Debug, Clone, Default)]
pub(super) struct BusyFlag(Arc<AtomicBool>);

impl BusyFlag {
    /// Takes effect from the next write on.
    pub(super) fn set(&self, busy: bool) {
        // Usually it is set already; not storing again keeps other cores' caches valid.
        if self.is_set() != busy {
            self.0.store(busy, Ordering::Relaxed);
        }
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl LazyWritable {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        let stream = OwnedFd::from(stream.into_std()?);
        Ok(Self {
            reading: pipe::Receiver::from_owned_fd_unchecked(stream)?,
            writing: None,
            busy: BusyFlag::default(),
        })
    }

    /// Follows this flag from now on.
    pub(super) fn use_busy_flag(&mut self, busy: &BusyFlag) {
        self.busy = busy.clone();
    }

    fn duplicate(&self) -> io::Result<pipe::Sender> {
        pipe::Sender::from_owned_fd_unchecked(self.reading.as_fd().try_clone_to_owned()?)
    }

    /// Sends what the socket takes now; `None` when it is full.
    fn send_now(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::writev(&self.reading, slices) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                sent => return Ok(Some(sent?)),
            }
        }
    }
}

impl AsyncRead for LazyWritable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reading).poll_read(cx, into)
    }
}

impl AsyncWrite for LazyWritable {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut writing = match self.writing.take() {
            Some(writing) => writing,
            None if !self.busy.is_set() => self.duplicate()?,
            None => match self.send_now(slices)? {
                Some(sent) => return Poll::Ready(Ok(sent)),
                None => self.duplicate()?,
            },
        };
        let waited = Pin::new(&mut writing).poll_write_vectored(cx, slices);
        // A busy connection drops it once the socket takes everything again.
        let all: usize = slices.iter().map(|slice| slice.len()).sum();
        if !self.busy.is_set() || !matches!(&waited, Poll::Ready(Ok(sent)) if *sent == all) {
            self.writing = Some(writing);
        }
        Poll::Ready(ready!(waited))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&self.reading, Shutdown::Write).map_err(io::Error::from))
    }
}

#[cfg(test)]
#[path = "lazy_writable_tests.rs"]
mod tests;
