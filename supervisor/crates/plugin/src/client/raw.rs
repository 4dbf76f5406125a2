//! Calls of any method, as bytes: for whoever judges what a plugin answers rather than using it.

use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use tokio::time::Instant;
use tonic::{Request, Status};

use super::codec::RawCodec;
use super::link::{OneCall, Tap};
use super::{Client, ORIGIN, status};
use crate::execute::ExecuteError;

/// One call of any method.
#[derive(Debug, Clone)]
pub(crate) struct RawCall {
    /// `/package.Service/Method`.
    pub(crate) path: PathAndQuery,
    /// The message.
    pub(crate) message: Bytes,
    /// What its `grpc-timeout` header says.
    pub(crate) timeout: Option<Duration>,
    /// How long an answer is waited for, whatever the header says. Then the stream is reset.
    pub(crate) patience: Duration,
    /// The largest answer.
    pub(crate) max_answer_bytes: usize,
}

impl Client {
    /// Calls once. Dropping the future resets the stream.
    pub(crate) async fn raw(&self, call: RawCall) -> Result<Bytes, ExecuteError> {
        let RawCall { path, message, timeout, patience, max_answer_bytes } = call;
        let began = Instant::now();
        let counted = self.least_used();
        let link = OneCall { link: counted.0.link.clone(), tap: Tap::default() };
        let mut grpc = tonic::client::Grpc::with_origin(link, ORIGIN.clone())
            .max_decoding_message_size(max_answer_bytes);
        let mut request = Request::new(message);
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        let answered = tokio::time::timeout(patience, grpc.unary(request, path, RawCodec)).await;
        let answer = answered.map_err(|_| ExecuteError::TimedOut { waited: began.elapsed() })?;
        let meaning = |status: Status| status::into_error(&status, max_answer_bytes, false, began.elapsed());
        answer.map(tonic::Response::into_inner).map_err(meaning)
    }
}
