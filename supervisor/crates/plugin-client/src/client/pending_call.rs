//! One call in flight.

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::execute_error::ExecuteError;

/// One call in flight. Dropping both futures cancels it on the wire.
pub struct PendingCall {
    /// The answer, as the plugin encoded it.
    pub answer: BoxFuture<'static, Result<Bytes, ExecuteError>>,
    /// For calls whose answer is no longer awaited: resolves when the plugin has ended the call in any way,
    /// and immediately if it never received the call. Data that still arrives is discarded.
    pub stream_end: BoxFuture<'static, ()>,
}
