//! A connection's socket, which holds its place until it is closed: also after an upgrade to WebSocket, when no task of the
//! listener knows it any more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::limiter::ConnectionPermit;

/// How much later than `gateway.limits.unread_timeout` the kernel ends a connection by itself: before that a WebSocket is told why.
const KERNEL_TIMEOUT_AFTER: Duration = Duration::from_secs(5);
/// When the kernel asks an idle client whether it is still there, how often again, and after how many missing answers the connection
/// is over: a half-open one is noticed within two minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;

/// The socket and its place.
#[derive(Debug)]
pub(super) struct PermittedStream {
    stream: TcpStream,
    _permit: ConnectionPermit,
}

impl PermittedStream {
    /// Sets the socket's limits: the kernel ends the connection of a client that takes nothing for `unread_timeout` and a moment. One that
    /// reads slowly takes something.
    ///
    /// # Errors
    /// When the connection is over already.
    pub(super) fn new(
        stream: TcpStream,
        permit: ConnectionPermit,
        unread_timeout: Duration,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let timeout = unread_timeout.saturating_add(KERNEL_TIMEOUT_AFTER);
        let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(&stream, milliseconds)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_PROBES)?;
        Ok(Self { stream, _permit: permit })
    }
}

impl AsyncRead for PermittedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for PermittedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}
