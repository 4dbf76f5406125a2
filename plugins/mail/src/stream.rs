//! The connection that lettre speaks SMTP on.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use talon_sink::connection::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that is read byte by byte.
///
/// lettre reads ahead, and keeps what it read when the connection is encrypted: answers that somebody on the way puts behind
/// the one to STARTTLS would count as the server's. Byte by byte, nothing is read ahead, and such answers break the handshake.
/// A dialogue with its handshake has a few thousand bytes.
#[derive(Debug)]
pub(crate) struct ByteStream(pub(crate) Box<dyn Stream>);

impl AsyncTokioStream for ByteStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a tunnel has no address"))
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte[..buf.remaining().min(1)]);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut one))?;
        buf.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    // Promises: EXT-83
    #[tokio::test]
    async fn nothing_is_read_ahead() {
        let (ours, mut theirs) = tokio::io::duplex(100);
        theirs.write_all(b"220 go ahead\r\n250 injected\r\n").await.expect("there is room");
        let mut stream = ByteStream(Box::new(ours));
        let mut read = [0; 50];
        assert_eq!(stream.read(&mut read).await.expect("reads"), 1);
        assert_eq!(read[0], b'2');
        assert_eq!(stream.read(&mut []).await.expect("reads"), 0);
        drop(theirs);
        let mut rest = String::new();
        assert_eq!(stream.read_to_string(&mut rest).await.expect("reads"), 27);
        assert_eq!(stream.read(&mut read).await.expect("ends"), 0);
    }
}
