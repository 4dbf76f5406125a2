//! Distributes one turn's chunks to all followers.
//!
//! The turn never waits for a follower. Each follower has a queue bounded in chunks and in bytes. One that
//! reads too slowly first loses pieces of text, which the final chunk repeats in full, and is notified how
//! many. Other chunks are never dropped; a follower that does not keep up even with those is disconnected
//! with a reason. The end is in no queue: every follower gets it.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use parking_lot::Mutex;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{Approval, Chunk, LoopState, Notice};
use talon_store::Timestamp;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::chunk_filter::ChunkFilter;
use crate::driver::Listener;
use crate::metrics::Metrics;

/// Queued chunks of one follower beyond which pieces of text are dropped. 256: some seconds of a fast model.
const MAX_PIECES: usize = 256;
/// Queued bytes of one follower beyond which pieces of text are dropped. 1 MiB: more than a model writes in
/// one answer.
const MAX_PIECE_BYTES: usize = 1 << 20;
/// Queued chunks of one follower beyond which it is disconnected. 1024: all transitions, calls and results of
/// a turn with its default limits, four times over.
const MAX_WAITING: usize = 1024;
/// Queued bytes of one follower beyond which it is disconnected. 4 MiB: some tool results, of at most 1 MiB
/// each. A disconnected client can follow again.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Queued bytes of the followers of all turns, beyond which further chunks are dropped or followers
/// disconnected. 64 MiB: a chunk is in memory once but counted for each follower, so this bounds the memory
/// if all turns send at once.
const MAX_ALL_WAITING_BYTES: usize = 64 << 20;
/// The most approvals that are kept for later followers, far more than may wait in one session.
const MAX_APPROVALS: usize = 256;

/// The queued bytes of all followers of all turns. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueuedBytes(Arc<AtomicUsize>);

impl QueuedBytes {
    /// Reserves so many bytes; returns whether there was room.
    fn take(&self, bytes: usize) -> bool {
        let more = |now: usize| now.checked_add(bytes).filter(|all| *all <= MAX_ALL_WAITING_BYTES);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The chunks of one turn, and its followers.
#[derive(Debug)]
pub(crate) struct Hub {
    metrics: Arc<Metrics>,
    waiting: QueuedBytes,
    over: CancellationToken,
    /// The most followers; one more is rejected.
    max_followers: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    followers: Vec<Arc<Mutex<FollowerQueue>>>,
    /// Where the loop is.
    at: LoopState,
    /// Whether a call ever waited for a person.
    waited: bool,
    /// Calls that wait for a person now, by id.
    pending: BTreeMap<String, Approval>,
    /// Its last chunk, which is sent when everything else is done.
    last: Option<Kind>,
    /// How it ended.
    end: Option<StreamEnd>,
}

/// How a turn ended for its followers.
#[derive(Debug, Clone)]
enum StreamEnd {
    /// With its last chunk.
    Told(Arc<Kind>),
    /// Without a last chunk: the agent ends, and the turn is resumed later.
    Left(String),
}

/// The queue of one follower.
#[derive(Debug, Default)]
struct FollowerQueue {
    filter: ChunkFilter,
    /// Each with its size; a chunk is in memory once for all followers.
    chunks: VecDeque<(Arc<Kind>, usize)>,
    bytes: usize,
    /// The count of all queued bytes.
    waiting: QueuedBytes,
    /// Pieces of text dropped since the last chunk.
    lost: u64,
    /// The follower was too slow, or is gone.
    cut: bool,
    gone: bool,
    end: Option<StreamEnd>,
    waker: Option<Waker>,
}

impl Hub {
    /// Creates the hub of a new turn.
    pub(crate) fn new(
        at: LoopState,
        metrics: Arc<Metrics>,
        waiting: QueuedBytes,
        max_followers: usize,
    ) -> Arc<Self> {
        let state = State { at, ..State::default() };
        let over = CancellationToken::new();
        Arc::new(Self { metrics, waiting, over, max_followers, state: Mutex::new(state) })
    }

    /// The loop's present state.
    pub(crate) fn loop_state(&self) -> LoopState {
        self.state.lock().at.clone()
    }

    /// Whether a call ever waited for a person.
    pub(crate) fn has_waited(&self) -> bool {
        self.state.lock().waited
    }

    /// The number of followers.
    pub(crate) fn followers(&self) -> usize {
        self.state.lock().followers.len()
    }

    /// Adds a follower, which first gets these chunks.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many.
    pub(crate) fn follow(&self, first: impl FnOnce(&LoopState) -> Vec<Kind>) -> Result<Subscription, Status> {
        let mut state = self.state.lock();
        if state.followers.len() >= self.max_followers {
            return Err(Status::resource_exhausted(format!(
                "{} clients follow this turn already: end one of them first, or raise agent.limits.followers_per_turn",
                self.max_followers
            )));
        }
        let mut chunks = first(&state.at);
        let now = Timestamp::now().as_millis().unsigned_abs();
        let waiting = state.pending.values().filter(|approval| approval.expires_unix_ms > now);
        chunks.extend(waiting.cloned().map(Kind::Approval));
        // These are few and small, and the number of followers is bounded, so the limits need not apply.
        let chunks = chunks.into_iter().map(|chunk| (Arc::new(chunk), 0)).collect();
        let (waiting, end) = (self.waiting.clone(), state.end.clone());
        let queue = FollowerQueue { chunks, waiting, end, ..FollowerQueue::default() };
        let queue = Arc::new(Mutex::new(queue));
        if state.end.is_none() {
            state.followers.push(Arc::clone(&queue));
        }
        Ok(Subscription { queue, metrics: Arc::clone(&self.metrics) })
    }

    /// Whether the turn has its last chunk, which is not sent yet.
    pub(crate) fn has_last(&self) -> bool {
        self.state.lock().last.is_some()
    }

    /// Sends the last chunk.
    pub(crate) fn finish(&self) {
        let last = self.state.lock().last.take();
        if let Some(last) = last {
            self.end(StreamEnd::Told(Arc::new(last)));
        }
    }

    /// Returns when it has ended.
    pub(crate) async fn wait_ended(&self) {
        self.over.cancelled().await;
    }

    /// Ends the streams because the agent ends and the turn stays interrupted; the followers are notified.
    pub(crate) fn interrupt(&self, why: &str) {
        self.end(StreamEnd::Left(why.to_owned()));
    }

    fn end(&self, end: StreamEnd) {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        for follower in std::mem::take(&mut state.followers) {
            let mut queue = follower.lock();
            queue.end = Some(end.clone());
            queue.wake();
        }
        state.end = Some(end);
        drop(state);
        self.over.cancel();
    }
}

impl Listener for Hub {
    fn on_chunk(&self, chunk: Kind) {
        self.metrics.count_chunk(&chunk);
        let mut state = self.state.lock();
        if matches!(chunk, Kind::Done(_) | Kind::Error(_)) {
            state.last = Some(chunk);
            return;
        }
        match &chunk {
            Kind::Loop(at) => state.at = at.clone(),
            Kind::Approval(approval) if approval.state == "pending" => {
                state.waited = true;
                if state.pending.len() < MAX_APPROVALS {
                    state.pending.insert(approval.id.clone(), approval.clone());
                }
            }
            Kind::Approval(approval) => drop(state.pending.remove(&approval.id)),
            // Who follows later is asked about the plan as it is now.
            Kind::Plan(plan) => {
                let about_it = state.pending.values_mut().filter_map(|approval| approval.plan.as_mut());
                about_it.for_each(|shown| shown.clone_from(plan));
            }
            _ => {}
        }
        if state.followers.is_empty() {
            return;
        }
        let (bytes, chunk) = (chunk.encoded_len(), Arc::new(chunk));
        state.followers.retain(|follower| follower.lock().push(&chunk, bytes));
    }
}

fn is_piece(chunk: &Kind) -> bool {
    matches!(chunk, Kind::Text(_) | Kind::Thinking(_) | Kind::ToolProgress(_) | Kind::ToolStream(_))
}

impl FollowerQueue {
    /// Queues a chunk; returns whether the follower keeps up.
    fn push(&mut self, chunk: &Arc<Kind>, bytes: usize) -> bool {
        if self.gone {
            return false;
        }
        if !self.filter.has(chunk) {
            return true;
        }
        let (chunks, total) = (self.chunks.len(), self.bytes.saturating_add(bytes));
        if chunks >= MAX_PIECES && self.join(chunk, bytes) {
            return true;
        }
        let may_be_lost = is_piece(chunk) && self.filter == ChunkFilter::All;
        let full = if may_be_lost {
            chunks >= MAX_PIECES || total > MAX_PIECE_BYTES
        } else {
            chunks >= MAX_WAITING || total > MAX_WAITING_BYTES
        };
        // Counted with all other followers' chunks, too.
        if full || !self.waiting.take(bytes) {
            if may_be_lost {
                self.lost += 1;
                return true;
            }
            self.cut = true;
            self.wake();
            return false;
        }
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            self.chunks.push_back((Arc::new(Kind::Notice(missing(lost))), 0));
        }
        self.chunks.push_back((Arc::clone(chunk), bytes));
        self.bytes = total;
        self.wake();
        true
    }

    /// Adds a piece of text to the last one, where none may be left out. Returns whether it was.
    fn join(&mut self, chunk: &Kind, bytes: usize) -> bool {
        let (Kind::Text(more), ChunkFilter::Text) = (chunk, self.filter) else { return false };
        let Some((last, size)) = self.chunks.back_mut() else { return false };
        let Kind::Text(text) = &**last else { return false };
        let total = self.bytes.saturating_add(bytes);
        if more.whole || text.whole || total > MAX_WAITING_BYTES || !self.waiting.take(bytes) {
            return false;
        }
        if let Kind::Text(text) = Arc::make_mut(last) {
            text.text.push_str(&more.text);
        }
        *size += bytes;
        self.bytes = total;
        true
    }

    /// Takes the next chunk. The last follower to take it gets it without a copy.
    fn pop(&mut self) -> Option<Kind> {
        let (chunk, bytes) = self.chunks.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.waiting.give_back(bytes);
        Some(Arc::unwrap_or_clone(chunk))
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

fn missing(lost: u64) -> Notice {
    let text = format!(
        "{lost} pieces are missing here, since this reader is too slow: the end and the results have all of it"
    );
    Notice { level: "warn".to_owned(), text, discard_text: false }
}

/// One follower's stream of chunks. Dropping it ends the subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    queue: Arc<Mutex<FollowerQueue>>,
    metrics: Arc<Metrics>,
}

impl Subscription {
    /// Leaves out what its follower does not want.
    pub(crate) fn filtered(self, filter: ChunkFilter) -> Self {
        if filter != ChunkFilter::All {
            let mut queue = self.queue.lock();
            queue.filter = filter;
            let chunks = std::mem::take(&mut queue.chunks);
            for (chunk, bytes) in chunks {
                if filter.has(&chunk) {
                    queue.chunks.push_back((chunk, bytes));
                } else {
                    queue.bytes = queue.bytes.saturating_sub(bytes);
                    queue.waiting.give_back(bytes);
                }
            }
        }
        self
    }
}

impl Stream for Subscription {
    type Item = Result<Chunk, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = self.queue.lock();
        if queue.gone {
            return Poll::Ready(None);
        }
        if let Some(chunk) = queue.pop() {
            return Poll::Ready(Some(Ok(Chunk { kind: Some(chunk) })));
        }
        if queue.cut {
            queue.gone = true;
            let text = "this reader is too slow for the turn, which goes on: follow it again with Attach";
            return Poll::Ready(Some(Err(Status::resource_exhausted(text))));
        }
        if queue.lost > 0 {
            let lost = std::mem::take(&mut queue.lost);
            self.metrics.count_lost_pieces(lost);
            return Poll::Ready(Some(Ok(Chunk { kind: Some(Kind::Notice(missing(lost))) })));
        }
        let Some(end) = queue.end.take() else {
            queue.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        queue.gone = true;
        Poll::Ready(Some(match end {
            StreamEnd::Told(chunk) => Ok(Chunk { kind: Some(Arc::unwrap_or_clone(chunk)) }),
            StreamEnd::Left(why) => Err(Status::unavailable(why)),
        }))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        queue.gone = true;
        // Nothing reads the queue any more.
        queue.chunks.clear();
        let bytes = std::mem::take(&mut queue.bytes);
        queue.waiting.give_back(bytes);
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
