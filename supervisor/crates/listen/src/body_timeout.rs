//! A timeout for request bodies.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep};
use tonic::Status;

/// How long a request's body may take. The largest has about a mebibyte, and comes over a unix socket. For a
/// streamed body the timeout applies to each piece.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The error for a request that was not complete within [`BODY_TIMEOUT`].
#[must_use]
pub fn body_timed_out() -> Status {
    Status::deadline_exceeded(format!("the request was not sent whole within {} s", BODY_TIMEOUT.as_secs()))
}

/// A request's body with the timeout [`BODY_TIMEOUT`], which applies to each piece if the body is streamed.
/// It fails with DEADLINE_EXCEEDED.
#[derive(Debug)]
pub struct BodyTimeout<B> {
    body: B,
    /// The timer, once the body had to be waited for. A small request comes with its headers, and needs none.
    deadline: Option<Pin<Box<Sleep>>>,
    piecewise: bool,
}

impl<B> BodyTimeout<B> {
    /// The timeout starts with the first poll that finds nothing.
    #[must_use]
    pub fn new(body: B, piecewise: bool) -> Self {
        Self { body, deadline: None, piecewise }
    }
}

impl<B: HttpBody<Error = Status> + Unpin> HttpBody for BodyTimeout<B> {
    type Data = B::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Status>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if self.piecewise
                && let Some(late) = &mut self.deadline
            {
                late.as_mut().reset(Instant::now() + BODY_TIMEOUT);
            }
            return Poll::Ready(frame);
        }
        let late = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(BODY_TIMEOUT)));
        late.as_mut().poll(cx).map(|()| Some(Err(body_timed_out())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
