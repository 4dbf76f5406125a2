//! Messages that wait for the end of the turn that their session is in.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_store::SessionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tonic::Status;

use super::RunningTurn;

/// The messages that wait, by session. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageQueues(Arc<Mutex<HashMap<SessionId, Queue>>>);

#[derive(Debug)]
struct Queue {
    /// One permit: for who is next. Others wait in the order in which they came.
    next: Arc<Semaphore>,
    waiting: usize,
    mergeable: Vec<MergeableMessage>,
    /// How many came in all.
    count: u64,
}

/// A message that may become part of the turn of another one that waits, too.
#[derive(Debug)]
pub(crate) struct MergeableMessage {
    /// Its place among all that came.
    number: u64,
    pub(crate) text: String,
    /// The client's own name of it; empty without one.
    pub(crate) client_id: String,
    turn: oneshot::Sender<Arc<RunningTurn>>,
}

impl MergeableMessage {
    /// Tells its client which turn it became a part of.
    pub(crate) fn joined(self, turn: &Arc<RunningTurn>) {
        // A client that is gone does not follow.
        let _gone = self.turn.send(Arc::clone(turn));
    }
}

/// What comes of waiting.
#[derive(Debug)]
pub(crate) enum QueueOutcome {
    /// It is this message's turn to begin one.
    Next(QueuePlace),
    /// It became part of a turn that another message began.
    Joined(Arc<RunningTurn>),
}

/// A place in the queue of a session. Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct QueuePlace {
    queues: MessageQueues,
    session: SessionId,
    number: u64,
    permit: Option<OwnedSemaphorePermit>,
}

impl MessageQueues {
    /// Waits until all that came before have begun their turns. `text` is there if the message may be merged.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if more than `most` wait in the session.
    pub(crate) async fn wait(
        &self,
        session: SessionId,
        most: u32,
        mergeable: Option<(String, String)>,
    ) -> Result<QueueOutcome, Status> {
        let (sender, joined) = oneshot::channel();
        let may_join = mergeable.is_some();
        let (next, mut place) = {
            let mut queues = self.0.lock();
            let next = Arc::new(Semaphore::new(1));
            let new = || Queue { next, waiting: 0, mergeable: Vec::new(), count: 0 };
            let queue = queues.entry(session).or_insert_with(new);
            if queue.waiting >= usize::try_from(most).unwrap_or(usize::MAX) {
                return Err(Status::resource_exhausted(format!(
                    "{most} messages wait in this session already: wait for some to be answered, or raise agent.sessions.queue"
                )));
            }
            queue.waiting += 1;
            queue.count += 1;
            let number = queue.count;
            if let Some((text, client_id)) = mergeable {
                queue.mergeable.push(MergeableMessage { number, text, client_id, turn: sender });
            }
            let place = QueuePlace { queues: self.clone(), session, number, permit: None };
            (Arc::clone(&queue.next), place)
        };
        tokio::select! {
            biased;
            joined = joined, if may_join => match joined {
                Ok(turn) => Ok(QueueOutcome::Joined(turn)),
                Err(_failed) => Err(Status::unavailable("the turn that was to answer this message, too, did not begin: ask again")),
            },
            permit = next.acquire_owned() => {
                // The semaphore is never closed.
                place.permit = permit.ok();
                Ok(QueueOutcome::Next(place))
            }
        }
    }
}

impl QueuePlace {
    /// Takes all other messages that may become part of this one's turn, in their order.
    pub(crate) fn take_mergeable(&self) -> Vec<MergeableMessage> {
        let mut queues = self.queues.0.lock();
        let Some(queue) = queues.get_mut(&self.session) else { return Vec::new() };
        let mut others = std::mem::take(&mut queue.mergeable);
        // Its own is one of them, and whose client is gone is not asked for any more.
        others.retain(|message| message.number != self.number && !message.turn.is_closed());
        others
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut queues = self.queues.0.lock();
        if let Some(queue) = queues.get_mut(&self.session) {
            queue.waiting -= 1;
            // Whose client is gone is not merged any more.
            queue.mergeable.retain(|message| !message.turn.is_closed());
            if queue.waiting == 0 {
                queues.remove(&self.session);
            }
        }
        drop(queues);
        self.permit = None;
    }
}

#[cfg(test)]
#[path = "message_queue_tests.rs"]
mod tests;
