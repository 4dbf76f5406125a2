//! One connection to a process, re-established when it broke.
//!
//! Built directly on h2. tonic's channel ends every call when the time in its `grpc-timeout` header is over,
//! and the stream with it: then it could not be observed whether the plugin ends the call by its deadline.
//! And hyper's client puts a queue, a task and three allocations between each call and h2; measured, a call
//! of 1 KiB spent a third of its time there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use h2::SendStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use parking_lot::Mutex;
use talon_wire::frames::{ConnectionSide, FrameFloodError, FrameLimited};
use talon_wire::{BusyFlag, BusyPoll, CoalescingWriter};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::SetOnce;

use crate::connect::{ConnectError, Target};

/// HTTP/2 frames of up to 1 MiB: measured, an answer of 64 KiB takes half the time it takes in frames of the
/// default 16 KiB, because it arrives in one buffer.
const MAX_FRAME_BYTES: u32 = 1 << 20;

/// How much of one answer may be in flight: 2 MiB, so that a large one does not wait for window updates, and
/// an oversized one is refused after that much.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;

/// How much may be in flight on one connection: eight large answers at once.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// How much of h2's own budget small DATA frames may use that were received and not read, as those of a call that is over:
/// each takes 256 less its length, and when it is used up, h2 ends the connection. 16 MiB is twice h2's default for this
/// window: 64 Ki frames of a byte, some 10 MB of memory. So a flood exceeds [our budget](talon_wire::frames), which is
/// charged to the plugin, before h2 ends the connection, which is not.
const UNREAD_FRAMES_BUDGET: usize = 16 << 20;

/// The largest header list of an answer; a larger one resets its stream. It holds gRPC's status and message,
/// of which [`MAX_STATUS_MESSAGE_CHARS`](crate::execute_error::MAX_STATUS_MESSAGE_CHARS) are kept.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// How many calls are sent before the plugin announces its limit: no more than any server allows.
const INITIAL_MAX_STREAMS: usize = 100;

/// How long an answer is busy-polled: as long as KVM's halt polling, and two to four times what a small call
/// takes.
const BUSY_POLL_LIMIT: Duration = Duration::from_micros(200);

/// Why a call did not reach the plugin, or got no answer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// There is no connection.
    #[error("cannot connect: {0}")]
    Connect(#[from] ConnectError),
    /// The connection broke, does not speak HTTP/2, or the stream was reset.
    #[error("the HTTP/2 connection failed: {0}")]
    Http(#[from] h2::Error),
}

/// Set once the process has flooded one of its connections.
pub(super) type FloodReport = Arc<SetOnce<FrameFloodError>>;

/// One connection to a process.
#[derive(Debug)]
pub(super) struct Link {
    target: Target,
    flooded: FloodReport,
    busy: BusyFlag,
    busy_poll: BusyPoll,
    current: Mutex<DialedConnection>,
    /// Held while reconnecting, so that concurrent calls open a single connection.
    dial_lock: tokio::sync::Mutex<()>,
}

/// An established connection.
#[derive(Debug, Clone)]
struct DialedConnection {
    sender: SendRequest<Bytes>,
    /// Set when it ended.
    closed: Arc<AtomicBool>,
}

impl Link {
    pub(super) async fn open(target: Target, flooded: FloodReport) -> Result<Self, LinkError> {
        let busy = BusyFlag::default();
        let current = Mutex::new(dial(&target, &busy, &flooded).await?);
        Ok(Self {
            target,
            flooded,
            busy,
            busy_poll: BusyPoll::for_up_to(BUSY_POLL_LIMIT),
            current,
            dial_lock: tokio::sync::Mutex::default(),
        })
    }

    /// The flag that says whether it has many calls.
    pub(super) fn busy(&self) -> &BusyFlag {
        &self.busy
    }

    /// The busy-polling of this connection's answers.
    pub(super) fn busy_poll(&self) -> &BusyPoll {
        &self.busy_poll
    }

    /// Opens a stream with this head. `head` may be called a second time, for a new connection: the previous
    /// one accepted no more streams, so nothing of the first attempt reached the plugin.
    pub(super) async fn open_stream(
        &self,
        head: impl Fn() -> Request<()>,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), LinkError> {
        let mut dialled = self.current.lock().clone();
        if !dialled.closed.load(Ordering::Acquire)
            && let Ok(opened) = dialled.sender.send_request(head(), false)
        {
            return Ok(opened);
        }
        // Boxed: rare, and a large future.
        let mut dialled = Box::pin(self.redial(&dialled)).await?;
        Ok(dialled.sender.send_request(head(), false)?)
    }

    async fn redial(&self, before: &DialedConnection) -> Result<DialedConnection, LinkError> {
        let _one_at_a_time = self.dial_lock.lock().await;
        let current = self.current.lock().clone();
        // Another call reconnected while this one waited for the lock.
        if !Arc::ptr_eq(&current.closed, &before.closed) && !current.closed.load(Ordering::Acquire) {
            return Ok(current);
        }
        let dialled = dial(&self.target, &self.busy, &self.flooded).await?;
        *self.current.lock() = dialled.clone();
        Ok(dialled)
    }
}

/// On a multi-threaded runtime, a connection's task runs right after each call that sends something, so
/// writes have to be coalesced. On a single thread it runs after all of them, which coalesces the writes
/// already.
fn coalescing<S>(io: S) -> CoalescingWriter<S> {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::CurrentThread => CoalescingWriter::passthrough(io),
        _ => CoalescingWriter::new(io),
    }
}

/// Boxed, so that HTTP/2 is compiled for its connection once, in this crate, and not again in each crate that awaits a
/// client.
fn dial<'a>(
    target: &'a Target,
    busy: &'a BusyFlag,
    flooded: &'a FloodReport,
) -> BoxFuture<'a, Result<DialedConnection, LinkError>> {
    Box::pin(connect(target, busy, flooded))
}

async fn connect(
    target: &Target,
    busy: &BusyFlag,
    flooded: &FloodReport,
) -> Result<DialedConnection, LinkError> {
    let io = target.connect(busy).await?;
    let flooded = Arc::clone(flooded);
    let io = FrameLimited::new(coalescing(io), ConnectionSide::Client, target.frames(), move |flood| {
        // Another connection may have reported it already.
        let _ = flooded.set(flood);
    });
    let (sender, connection) = Builder::new()
        .enable_push(false)
        .max_frame_size(MAX_FRAME_BYTES)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(MAX_HEADER_BYTES)
        .initial_max_send_streams(INITIAL_MAX_STREAMS)
        .data_frame_budget(UNREAD_FRAMES_BUDGET)
        .handshake(io)
        .await?;
    let over = Arc::new(AtomicBool::new(false));
    let told = over.clone();
    // It ends with its last sender and stream; each of its calls gets the error itself.
    tokio::spawn(async move {
        let _ended = connection.await;
        told.store(true, Ordering::Release);
    });
    Ok(DialedConnection { sender, closed: over })
}
