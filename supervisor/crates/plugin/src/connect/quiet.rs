//! A unix socket that stays quiet while it is only read from at the other end.
//!
//! A runtime has the kernel tell it of room to write as well as of what there is to read, for as long as a socket is open. The
//! kernel tells of room whenever the other end has taken what was sent. So a plugin that reads a call wakes its caller, which
//! finds nothing to do, goes back to sleep and is woken again by the answer: measured, the kernel's work for a small call
//! nearly doubles. Here the kernel is asked about room only while there is none.
//!
//! That pays where there is much to do. A single call on a machine with nothing else to do is answered sooner the other way: a core
//! that was woken for nothing is still awake when the answer comes, and one that sleeps takes longer to wake than the whole call
//! takes. So a connection is quiet while it is [busy](Busy), and before that as loud as any other. Measured on two cores: with 64
//! calls at once a fourth more of them, with one call at a time half the time.

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
pub(crate) struct Quiet {
    /// The socket. What the runtime calls the end of a pipe is what it reads from and never writes to, which is how it is
    /// told of one of the two alone.
    reading: pipe::Receiver,
    /// The same socket once more, while the other end has to take something before more can be sent, and while it is loud.
    writing: Option<pipe::Sender>,
    busy: Busy,
}

/// Whether a connection has much to do. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Busy(Arc<AtomicBool>);

impl Busy {
    /// From its next write on.
    pub(crate) fn set(&self, busy: bool) {
        // Mostly it is already, and then nobody else's cache is disturbed.
        if self.is_set() != busy {
            self.0.store(busy, Ordering::Relaxed);
        }
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Quiet {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        let stream = OwnedFd::from(stream.into_std()?);
        Ok(Self {
            reading: pipe::Receiver::from_owned_fd_unchecked(stream)?,
            writing: None,
            busy: Busy::default(),
        })
    }

    /// From whom it hears whether it is busy.
    pub(crate) fn heed(&mut self, busy: &Busy) {
        self.busy = busy.clone();
    }

    fn another(&self) -> io::Result<pipe::Sender> {
        pipe::Sender::from_owned_fd_unchecked(self.reading.as_fd().try_clone_to_owned()?)
    }

    /// Sends what there is room for now; `None`: there is none.
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

impl AsyncRead for Quiet {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reading).poll_read(cx, into)
    }
}

impl AsyncWrite for Quiet {
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
            None if !self.busy.is_set() => self.another()?,
            None => match self.send_now(slices)? {
                Some(sent) => return Poll::Ready(Ok(sent)),
                None => self.another()?,
            },
        };
        let waited = Pin::new(&mut writing).poll_write_vectored(cx, slices);
        // A busy one lets go of it once there is room for everything again.
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
#[path = "quiet_tests.rs"]
mod tests;
