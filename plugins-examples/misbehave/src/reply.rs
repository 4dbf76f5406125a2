//! The possible replies, and the state that all connections share.

use std::pin::Pin;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::Mutex;

use crate::Options;
use crate::deferred::DeferredResults;

/// The reply to one RPC.
pub(crate) enum Reply {
    /// One message with these bytes, valid or not.
    Message(Bytes),
    /// A message whose length prefix is `claimed` and whose body comes from the stream.
    Raw { claimed: u32, body: Pin<Box<dyn Stream<Item = Bytes> + Send>> },
    /// A gRPC error.
    Status { code: u16, message: String },
    /// The stream is reset.
    Reset,
    /// No reply, ever.
    Never,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) calls: AtomicU64,
    pub(crate) declared: AtomicU64,
    pub(crate) one_at_a_time: Mutex<()>,
    pub(crate) late: DeferredResults,
}
