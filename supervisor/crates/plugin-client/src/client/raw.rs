//! Calls of any method, as bytes: for code that inspects a plugin's answers instead of using them.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::uri::PathAndQuery;
use tokio::time::Instant;
use tonic::Status;

use super::shared_stream::SharedStream;
use super::unary::{self, RequestHead};
use super::{Client, status};
use crate::execute_error::ExecuteError;

/// One call of any method.
#[derive(Debug, Clone)]
pub struct RawCall {
    /// `/package.Service/Method`.
    pub path: PathAndQuery,
    /// The message.
    pub message: Bytes,
    /// The value of its `grpc-timeout` header.
    pub timeout: Option<Duration>,
    /// How long to wait for an answer, independent of the header. Then the stream is reset.
    pub patience: Duration,
    /// The largest answer.
    pub max_answer_bytes: usize,
}

impl Client {
    /// Calls once. Dropping the future resets the stream.
    pub async fn raw(&self, call: RawCall) -> Result<Bytes, ExecuteError> {
        let RawCall { path, message, timeout, patience, max_answer_bytes } = call;
        let began = Instant::now();
        let used = self.least_used();
        let (tap, head) = (
            SharedStream::default(),
            RequestHead { uri: unary::uri(&path), metadata: HeaderMap::new(), timeout },
        );
        let message = talon_wire::message::framed_bytes(&message);
        let call = unary::call(used.link, &tap, &head, message, max_answer_bytes);
        let answered = tokio::time::timeout(patience, call).await;
        let answer = answered.map_err(|_| ExecuteError::TimedOut { waited: began.elapsed(), sent: true })?;
        let meaning = |status: Status| status::into_error(&status, max_answer_bytes, false, began.elapsed());
        answer.map_err(meaning)
    }
}
