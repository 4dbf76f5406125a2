//! One call's stream, shared with the future that waits for the answer, so that it can outlive its caller.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use http::response::Parts;
use parking_lot::Mutex;

/// A stream with two holders: it is reset when both have dropped it.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedStream(Arc<Mutex<StreamState>>);

#[derive(Debug, Default)]
enum StreamState {
    /// Nothing was sent to the plugin.
    #[default]
    Unsent,
    /// The request was sent.
    AwaitingHead(ResponseFuture),
    /// The answer is being received.
    ReceivingBody(RecvStream),
    /// The plugin has ended the stream, or it was moved out to be drained.
    Ended,
}

impl SharedStream {
    /// Stores the response future of a request that was sent.
    pub(super) fn set_response(&self, response: ResponseFuture) {
        *self.0.lock() = StreamState::AwaitingHead(response);
    }

    /// The head of the answer. Pending forever if no request was sent or the stream was moved out.
    pub(super) async fn head(&self) -> Result<Parts, h2::Error> {
        poll_fn(|cx| self.poll_head(cx)).await
    }

    /// The next frame of the answer; `None` once there are no more.
    pub(super) async fn data(&self) -> Option<Result<Bytes, h2::Error>> {
        poll_fn(|cx| match &mut *self.0.lock() {
            StreamState::ReceivingBody(body) => poll_data(body, cx),
            _ => Poll::Ready(None),
        })
        .await
    }

    /// The trailers. The stream is over then.
    pub(super) async fn trailers(&self) -> Result<Option<HeaderMap>, h2::Error> {
        poll_fn(|cx| {
            let mut flow = self.0.lock();
            let StreamState::ReceivingBody(body) = &mut *flow else { return Poll::Ready(Ok(None)) };
            let trailers = ready!(poll_trailers(body, cx));
            *flow = StreamState::Ended;
            Poll::Ready(trailers)
        })
        .await
    }

    /// Resolves once the plugin has ended the stream; immediately if it never received the call. Data that
    /// still arrives is discarded, so that at most a window's worth is ever buffered. Only for calls whose
    /// answer is no longer awaited.
    pub(super) async fn drain_to_end(self) {
        let flow = std::mem::replace(&mut *self.0.lock(), StreamState::Ended);
        let mut rest = match flow {
            StreamState::Unsent | StreamState::Ended => return,
            StreamState::AwaitingHead(response) => match response.await {
                Ok(response) => response.into_body(),
                Err(_) => return,
            },
            StreamState::ReceivingBody(rest) => rest,
        };
        while let Some(Ok(_)) = poll_fn(|cx| poll_data(&mut rest, cx)).await {
            // A plugin that sends without a pause must not monopolize the thread.
            tokio::task::coop::consume_budget().await;
        }
        // The stream ends with its trailers; whatever they say, it is over.
        let _ = poll_fn(|cx| poll_trailers(&mut rest, cx)).await;
    }

    #[cfg(test)]
    pub(super) fn is_receiving(&self) -> bool {
        matches!(*self.0.lock(), StreamState::ReceivingBody(_))
    }

    fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Result<Parts, h2::Error>> {
        let mut flow = self.0.lock();
        let StreamState::AwaitingHead(response) = &mut *flow else { return Poll::Pending };
        match ready!(std::pin::Pin::new(response).poll(cx)) {
            Ok(response) => {
                let (head, body) = response.into_parts();
                *flow = StreamState::ReceivingBody(body);
                Poll::Ready(Ok(head))
            }
            Err(error) => {
                *flow = StreamState::Ended;
                Poll::Ready(Err(error))
            }
        }
    }
}

/// The next frame of an answer. Its window is released immediately, because the caller does not buffer
/// earlier frames.
pub(super) fn poll_data(
    body: &mut RecvStream,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, h2::Error>>> {
    let piece = ready!(body.poll_data(cx));
    Poll::Ready(match piece {
        Some(Ok(piece)) => {
            // It fails only if the stream is over, and then nothing more comes.
            let _ = body.flow_control().release_capacity(piece.len());
            Some(Ok(piece))
        }
        Some(Err(error)) if is_plain_end(&error) => None,
        other => other,
    })
}

/// The trailers of an answer.
pub(super) fn poll_trailers(
    body: &mut RecvStream,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<HeaderMap>, h2::Error>> {
    body.poll_trailers(cx).map(|trailers| match trailers {
        Err(error) if is_plain_end(&error) => Ok(None),
        trailers => trailers,
    })
}

/// Servers end a stream that they want nothing more from with one of these, once their answer is sent. An
/// answer that is incomplete lacks its status then, which is checked elsewhere.
fn is_plain_end(error: &h2::Error) -> bool {
    matches!(error.reason(), Some(Reason::NO_ERROR | Reason::CANCEL))
}
