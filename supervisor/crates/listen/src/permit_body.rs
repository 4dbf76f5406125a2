//! Permits of requests whose answers the client has not received yet.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// A response body that holds its request's permit until the client has received it.
#[derive(Debug)]
pub struct PermitBody<B, P> {
    body: B,
    _permit: P,
}

impl<B, P> PermitBody<B, P> {
    /// `place` is dropped together with the body.
    #[must_use]
    pub fn new(body: B, place: P) -> Self {
        Self { body, _permit: place }
    }
}

impl<B: Body + Unpin, P: Unpin> Body for PermitBody<B, P> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_place_is_kept_until_the_body_is_gone() {
        let place = Arc::new(());
        let mut held = PermitBody::new("answer".to_owned(), Arc::clone(&place));
        assert_eq!(held.size_hint().exact(), Some(6));
        let frame = poll_fn(|cx| Pin::new(&mut held).poll_frame(cx)).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "answer");
        assert_eq!(Arc::strong_count(&place), 2);
        assert!(held.is_end_stream());
        drop(held);
        assert_eq!(Arc::strong_count(&place), 1);
    }
}
