//! Limits how many large request bodies are in memory at once.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tonic::codegen::Bytes;

use super::limits::MAX_PLAIN_REQUEST_BYTES;

/// The slot of a large request; empty while the request is a small one. Held until the request is answered or its
/// stream begins: by then its images are stored.
pub(super) type LargeSlot = Arc<OnceLock<OwnedSemaphorePermit>>;

/// A request's body that needs one of the slots once it has more than [`MAX_PLAIN_REQUEST_BYTES`].
#[derive(Debug)]
pub(super) struct LargeBody<B> {
    body: B,
    bytes: usize,
    slots: Arc<Semaphore>,
    slot: LargeSlot,
}

impl<B> LargeBody<B> {
    pub(super) fn new(body: B, slots: Arc<Semaphore>, slot: LargeSlot) -> Self {
        Self { body, bytes: 0, slots, slot }
    }

    fn admit(&mut self, more: usize) -> Result<(), Status> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes <= MAX_PLAIN_REQUEST_BYTES || self.slot.get().is_some() {
            return Ok(());
        }
        let permit = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| {
            Status::resource_exhausted(
                "as many questions with large images are received at once as may be (agent.limits.large_requests), and this is one more: \
                 ask again in a moment",
            )
        })?;
        // It was empty, and there is one body for it.
        let _set = self.slot.set(permit);
        Ok(())
    }
}

impl<B: HttpBody<Data = Bytes, Error = Status> + Unpin> HttpBody for LargeBody<B> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
            && let Err(status) = self.admit(data.len())
        {
            return Poll::Ready(Some(Err(status)));
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

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-161
    #[test]
    fn large_requests_have_slots_and_small_ones_need_none() {
        let slots = Arc::new(Semaphore::new(1));
        let body = || {
            let slot = LargeSlot::default();
            (LargeBody::new((), Arc::clone(&slots), Arc::clone(&slot)), slot)
        };
        let ((mut first, slot), (mut second, _)) = (body(), body());
        first.admit(MAX_PLAIN_REQUEST_BYTES).expect("it is small");
        assert!(slot.get().is_none());
        first.admit(1).expect("there is a slot");
        first.admit(MAX_PLAIN_REQUEST_BYTES).expect("it has one");
        second.admit(MAX_PLAIN_REQUEST_BYTES).expect("it is small");
        let refused = second.admit(1).expect_err("no slot");
        assert!(refused.message().contains("ask again"), "{refused}");
        drop((first, slot));
        second.admit(1).expect("it is free again");
    }
}
