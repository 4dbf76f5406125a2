//! What an answer can be, and what all connections share.

use std::pin::Pin;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::Mutex;

use crate::Options;
use crate::late::Late;

/// What one RPC gets.
pub(crate) enum Reply {
    /// One message, whatever its bytes are.
    Message(Bytes),
    /// A message whose length prefix says `claimed` and whose body is what the stream gives.
    Raw { claimed: u32, body: Pin<Box<dyn Stream<Item = Bytes> + Send>> },
    /// A gRPC error.
    Status { code: u16, message: String },
    /// The stream is reset.
    Reset,
    /// Nothing, ever.
    Never,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) calls: AtomicU64,
    pub(crate) declared: AtomicU64,
    pub(crate) one_at_a_time: Mutex<()>,
    pub(crate) late: Late,
}
