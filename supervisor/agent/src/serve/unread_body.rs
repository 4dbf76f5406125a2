//! Limits how many request bodies are read at once.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// A request's body that holds a permit until it is read to its end, or dropped.
#[derive(Debug)]
pub(super) struct UnreadBody<B> {
    body: B,
    permit: Option<OwnedSemaphorePermit>,
}

impl<B> UnreadBody<B> {
    pub(super) fn new(body: B, permit: OwnedSemaphorePermit) -> Self {
        Self { body, permit: Some(permit) }
    }
}

impl<B: HttpBody + Unpin> HttpBody for UnreadBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(None) = &polled {
            self.permit = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
