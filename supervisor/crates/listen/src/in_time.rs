//! A timeout for request bodies.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tonic::Status;

/// How long a request's body may take. The largest has about a mebibyte, and comes over a unix socket. For a
/// streamed body the timeout applies to each piece.
pub const BODY_WAIT: Duration = Duration::from_secs(30);

/// The error for a request that was not complete within [`BODY_WAIT`].
#[must_use]
pub fn not_in_time() -> Status {
    Status::deadline_exceeded(format!("the request was not sent whole within {} s", BODY_WAIT.as_secs()))
}

/// A request's body with the timeout [`BODY_WAIT`], which applies to each piece if the body is streamed. It
/// fails with DEADLINE_EXCEEDED.
#[derive(Debug)]
pub struct InTime<B> {
    body: B,
    /// The timer, once the body had to be waited for. A small request comes with its headers, and needs none.
    late: Option<Pin<Box<Sleep>>>,
    piecewise: bool,
}

impl<B> InTime<B> {
    /// The timeout starts with the first poll that finds nothing.
    #[must_use]
    pub fn new(body: B, piecewise: bool) -> Self {
        Self { body, late: None, piecewise }
    }
}

impl<B: HttpBody<Error = Status> + Unpin> HttpBody for InTime<B> {
    type Data = B::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Status>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if self.piecewise
                && let Some(late) = &mut self.late
            {
                late.as_mut().reset(Instant::now() + BODY_WAIT);
            }
            return Poll::Ready(frame);
        }
        let late = self.late.get_or_insert_with(|| Box::pin(tokio::time::sleep(BODY_WAIT)));
        late.as_mut().poll(cx).map(|()| Some(Err(not_in_time())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
