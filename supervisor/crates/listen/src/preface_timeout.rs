//! A timeout for clients that connect and send nothing.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use talon_wire::CoalescingWriter;
use talon_wire::frames::{ConnectionSide, FrameFloodError, FrameLimited, FrameLimits};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::Sleep;
use tonic::transport::server::Connected;

use crate::throttle::LogThrottle;

/// How long a client may take to send the HTTP/2 preface. Real clients do so at once; others only take
/// permits away.
pub const PREFACE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections were closed for a flood of frames.
const FLOODED_CONNECTIONS: &str = "talon_connections_flooded_total";

static FLOODS: LogThrottle = LogThrottle::new();

/// The length of the HTTP/2 client preface.
const PREFACE_BYTES: usize = 24;

/// A connection whose client has to send the preface in time: reading fails with [`io::ErrorKind::TimedOut`]
/// if it is not complete within [`PREFACE_TIMEOUT`]. After that the client may be silent for as long as it
/// likes, but not flood the connection: it has a [budget of frames](talon_wire::frames). Writes are
/// [coalesced](CoalescingWriter).
#[derive(Debug)]
pub struct PrefaceTimeout<C, S = UnixStream> {
    stream: FrameLimited<CoalescingWriter<S>>,
    preface: Option<PendingPreface>,
    client: C,
}

/// The missing part of the preface, and its timer.
#[derive(Debug)]
struct PendingPreface {
    bytes_left: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<C> PrefaceTimeout<C> {
    /// The timeout starts now. `client` is what the server knows of its client, and lives as long as the
    /// connection: its connection permit, for example. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(stream: UnixStream, client: C) -> Self {
        let uid = stream.peer_cred().map_or(u32::MAX, |peer| peer.uid());
        Self::with_frames(stream, uid, FrameLimits::default(), client)
    }

    /// The same for a connection with so many requests at once.
    #[must_use]
    pub fn of_streams(stream: UnixStream, streams: u32, client: C) -> Self {
        let uid = stream.peer_cred().map_or(u32::MAX, |peer| peer.uid());
        Self::with_frames(stream, uid, FrameLimits::of_streams(streams), client)
    }
}

impl<C, S> PrefaceTimeout<C, S> {
    /// The same for any connection, with another budget of frames. The log names a client that exceeds it by
    /// `uid`.
    #[must_use]
    pub fn with_frames(stream: S, uid: u32, frames: FrameLimits, client: C) -> Self {
        let late = Box::pin(tokio::time::sleep(PREFACE_TIMEOUT));
        let preface = Some(PendingPreface { bytes_left: PREFACE_BYTES, deadline: late });
        let report = move |flood| report_flood(uid, flood);
        let stream = CoalescingWriter::new(stream);
        let stream = FrameLimited::new(stream, ConnectionSide::Server, frames, report);
        Self { stream, preface, client }
    }

    /// What the server knows of its client.
    pub fn client(&self) -> &C {
        &self.client
    }
}

/// Counts and logs that a connection is closed, because its client exceeded its budget of frames.
fn report_flood(uid: u32, flood: FrameFloodError) {
    metrics::counter!(FLOODED_CONNECTIONS).increment(1);
    if let Some(unsaid) = FLOODS.permit() {
        tracing::warn!(
            peer.uid = uid,
            unsaid,
            "a client's connection was closed: {flood}; stop that client, take its role, or raise `host.frames` if it needs them"
        );
    }
}

/// Requests get the connect info of `client`.
impl<C: Connected, S> Connected for PrefaceTimeout<C, S> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> C::ConnectInfo {
        self.client.connect_info()
    }
}

impl<C: Unpin, S: AsyncRead + Unpin> AsyncRead for PrefaceTimeout<C, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, to);
        if let Some(words) = &mut self.preface {
            words.bytes_left = words.bytes_left.saturating_sub(to.filled().len() - before);
            if words.bytes_left == 0 {
                self.preface = None;
            } else if read.is_pending() && words.deadline.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        read
    }
}

impl<C: Unpin, S: AsyncWrite + Unpin> AsyncWrite for PrefaceTimeout<C, S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, from)
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

#[cfg(test)]
#[path = "preface_timeout_tests.rs"]
mod tests;
