//! A connection that is read to its end after the other side closed it.
//!
//! A supervisor that stops says which requests it did not process, and closes the connection. Who writes at that moment gets an error
//! of the write, and our HTTP/2 library then ends the connection without reading what was said: calls that were certainly not begun
//! would count as calls of which nothing is known. So writes to a closed connection are dropped, and what it still holds is read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose writes succeed, and go nowhere, once the other side closed it. Reading tells of the end.
#[derive(Debug)]
pub(crate) struct ReadUntilEnd<S> {
    stream: S,
    closed: bool,
}

impl<S> ReadUntilEnd<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, closed: false }
    }

    /// The outcome of a write of `bytes` bytes.
    fn outcome(&mut self, written: io::Result<usize>, bytes: usize) -> io::Result<usize> {
        match written {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                self.closed = true;
                Ok(bytes)
            }
            written => written,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadUntilEnd<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadUntilEnd<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(from)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = from.iter().map(|slice| slice.len()).sum();
        if self.closed {
            return Poll::Ready(Ok(bytes));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        written.map(|written| self.outcome(written, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        flushed.map(|flushed| self.outcome(flushed.map(|()| 0), 0).map(drop))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::*;

    // Promises: CLI-36
    #[tokio::test]
    async fn what_the_other_side_said_before_it_closed_is_read_after_a_write() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut ours = ReadUntilEnd::new(ours);
        ours.write_all(b"a request that nobody reads").await.unwrap();
        theirs.write_all(b"nothing was begun").await.unwrap();
        drop(theirs);
        for _ in 0..2 {
            ours.write_all(b"another request").await.unwrap();
            ours.flush().await.unwrap();
        }
        let mut said = [0; 17];
        ours.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"nothing was begun");
        // Then comes the end, or the error that something was left unread.
        assert!(matches!(ours.read(&mut said).await, Ok(0) | Err(_)));
    }
}
