//! What waits to be written to a connection: bounded in bytes. Who has more to say waits for room, so that a slow reader holds up its own
//! turns and nobody else.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::backends::STREAM_WINDOW_BYTES;
use crate::events::Envelope;

/// How much may wait for one connection, in bytes. A single message that is larger waits alone. 32 KiB, and as much in the window of its stream
/// from the agent ([`STREAM_WINDOW_BYTES`]): 64 KiB for a client that does not read.
pub(super) const MAX_WAITING_BYTES: u32 = STREAM_WINDOW_BYTES;

/// The writing end; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    room: Arc<Semaphore>,
    // Bounded by `room`: each message in it holds its bytes there.
    messages: UnboundedSender<Outgoing>,
}

/// The reading end.
#[derive(Debug)]
pub(super) struct OutboxReader {
    room: Arc<Semaphore>,
    messages: UnboundedReceiver<Outgoing>,
}

/// A message, which takes up room until it is dropped.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) text: String,
    _room: OwnedSemaphorePermit,
}

/// The connection has ended: nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionEndedError;

pub(super) fn outbox() -> (Outbox, OutboxReader) {
    let room = Arc::new(Semaphore::new(MAX_WAITING_BYTES as usize));
    let (sender, receiver) = unbounded_channel();
    (Outbox { room: Arc::clone(&room), messages: sender }, OutboxReader { room, messages: receiver })
}

impl Outbox {
    /// Puts an event in, once there is room.
    ///
    /// # Errors
    /// [`ConnectionEndedError`]
    pub(super) async fn push(&self, envelope: &Envelope) -> Result<(), ConnectionEndedError> {
        let mut text = envelope.to_json();
        // It may wait for long: only what is counted is kept.
        text.shrink_to_fit();
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX).min(MAX_WAITING_BYTES);
        let room =
            Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| ConnectionEndedError)?;
        self.messages.send(Outgoing { text, _room: room }).map_err(|_| ConnectionEndedError)
    }
}

impl OutboxReader {
    /// The next message; `None` when nobody writes any more.
    pub(super) async fn next(&mut self) -> Option<Outgoing> {
        self.messages.recv().await
    }
}

impl Drop for OutboxReader {
    fn drop(&mut self) {
        // Whoever waits for room learns that there is none to come.
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::events::ServerEvent;
    use crate::events::agent::AgentResponse;

    fn piece(bytes: usize) -> Envelope {
        let session_id = "sess_1".to_owned();
        let response = AgentResponse {
            session_id,
            content: "x".repeat(bytes),
            whole: false,
            attempt: None,
            offset: None,
        };
        Envelope::now(ServerEvent::AgentResponse(response), 1)
    }

    // Promises: GW-104
    #[tokio::test]
    async fn what_waits_is_bounded_and_room_comes_back() {
        let (outbox, mut reader) = outbox();
        let mut waiting = 0;
        let piece = piece(1000);
        while outbox.push(&piece).now_or_never().is_some() {
            waiting += piece.to_json().len();
        }
        assert!(
            waiting <= MAX_WAITING_BYTES as usize && waiting > MAX_WAITING_BYTES as usize - 2000,
            "{waiting}"
        );
        drop(reader.next().await.unwrap());
        assert_eq!(outbox.push(&piece).now_or_never(), Some(Ok(())));
    }

    #[tokio::test]
    async fn a_large_message_waits_alone_and_the_end_frees_who_waits() {
        let (outbox, reader) = outbox();
        let large = piece(MAX_WAITING_BYTES as usize * 2);
        assert_eq!(outbox.push(&large).now_or_never(), Some(Ok(())));
        let small = piece(1);
        let waits = outbox.push(&small);
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        drop(reader);
        assert_eq!(waits.await, Err(ConnectionEndedError));
    }
}
