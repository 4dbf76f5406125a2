//! Streams from and to an operator.

use futures_util::stream::BoxStream;
use tonic::{Status, Streaming};

use crate::limits::MAX_PAUSE;

/// A streamed response to the operator.
pub(super) type ResponseStream<T> = BoxStream<'static, Result<T, Status>>;

/// The next message of an operator's stream; `None` after the last.
pub(super) async fn next<T>(from: &mut Streaming<T>) -> Result<Option<T>, Status> {
    tokio::time::timeout(MAX_PAUSE, from.message()).await.unwrap_or_else(|_late| {
        Err(Status::deadline_exceeded(format!("nothing came for {} s", MAX_PAUSE.as_secs())))
    })
}
