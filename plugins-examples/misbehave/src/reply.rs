//! The possible replies.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;

/// The reply to one RPC.
pub(crate) enum Reply {
    /// One message with these bytes, valid or not.
    Message(Bytes),
    /// A message whose length prefix is `claimed` and whose body comes from the stream.
    Raw { claimed: u32, body: Pin<Box<dyn Stream<Item = Bytes> + Send>> },
    /// A stream of framed messages.
    Messages(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// A gRPC error.
    Status { code: u16, message: String },
    /// The stream is reset.
    Reset,
    /// No reply, ever.
    Never,
}
