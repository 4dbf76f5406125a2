//! From one turn to all who follow it.
//!
//! The turn never waits for a follower. Each has a queue with a bound in chunks and in bytes: one that reads too slowly loses pieces
//! of text first, which the end has whole, and is told how many; what is no piece of text is never left out, so that one who does not even keep
//! up with that is cut off with a reason. The end is in no queue: every follower gets it.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{Approval, Chunk, LoopState, Notice};
use talon_store::Timestamp;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::driver::Listener;
use crate::metrics::Metrics;

/// Chunks that wait for one follower, beyond which pieces of text are left out. 256: some seconds of a fast model.
const MAX_PIECES: usize = 256;
/// Bytes that wait for one follower, beyond which pieces of text are left out. 1 MiB: more than a model says in one answer.
const MAX_PIECE_BYTES: usize = 1 << 20;
/// Chunks that wait for one follower, beyond which it is cut off. 1024: all transitions, calls and results of a turn with its default
/// limits, four times over.
const MAX_WAITING: usize = 1024;
/// Bytes that wait for one follower, beyond which it is cut off. 4 MiB: some results of tools, which have a mebibyte at most. Who is cut
/// off follows again.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Bytes that wait for the followers of all turns together, beyond which one that is to get more loses pieces or is cut off. 64 MiB: a
/// chunk is in memory once, however many wait for it, and is counted for each; so this is what it can take if all turns talk at once.
const MAX_ALL_WAITING_BYTES: usize = 64 << 20;
/// Followers of one turn. 16: windows of one person; one more is refused.
const MAX_FOLLOWERS: usize = 16;
/// Approvals that are remembered for who comes later. Far more than may wait in one session.
const MAX_APPROVALS: usize = 256;

/// What waits for the followers of all turns, in bytes. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    /// Room for so many more; says whether there is some.
    fn take(&self, bytes: usize) -> bool {
        let more = |now: usize| now.checked_add(bytes).filter(|all| *all <= MAX_ALL_WAITING_BYTES);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What one turn tells, and who follows.
#[derive(Debug)]
pub(crate) struct Hub {
    metrics: Arc<Metrics>,
    waiting: Waiting,
    over: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    followers: Vec<Arc<Mutex<Queue>>>,
    /// Where the loop is.
    at: LoopState,
    /// Whether a call ever waited for a person.
    waited: bool,
    /// Calls that wait for a person now, by id.
    pending: BTreeMap<String, Approval>,
    /// Its last chunk, which is told when everything behind it is done.
    last: Option<Kind>,
    /// How it ended.
    end: Option<End>,
}

/// How a turn ended for its followers.
#[derive(Debug, Clone)]
enum End {
    /// With its last chunk.
    Told(Arc<Kind>),
    /// Not at all: the agent ends, and the turn goes on after that.
    Left(String),
}

/// What waits for one follower.
#[derive(Debug, Default)]
struct Queue {
    /// Each with its weight, and in memory once for all who wait for it.
    chunks: VecDeque<(Arc<Kind>, usize)>,
    bytes: usize,
    /// Where its bytes are counted with those of all others.
    waiting: Waiting,
    /// Pieces of text that it did not get since the last chunk.
    lost: u64,
    /// The follower is too slow, or gone.
    cut: bool,
    gone: bool,
    end: Option<End>,
    waker: Option<Waker>,
}

impl Hub {
    /// Of a turn that begins.
    pub(crate) fn new(at: LoopState, metrics: Arc<Metrics>, waiting: Waiting) -> Arc<Self> {
        let state = State { at, ..State::default() };
        Arc::new(Self { metrics, waiting, over: CancellationToken::new(), state: Mutex::new(state) })
    }

    /// Where the loop is.
    pub(crate) fn at(&self) -> LoopState {
        self.lock().at.clone()
    }

    /// Whether a call ever waited for a person.
    pub(crate) fn waited(&self) -> bool {
        self.lock().waited
    }

    /// How many follow.
    pub(crate) fn followers(&self) -> usize {
        self.lock().followers.len()
    }

    /// Follows from here on, after these chunks.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if too many do.
    pub(crate) fn follow(&self, first: impl FnOnce(&LoopState) -> Vec<Kind>) -> Result<Following, Status> {
        let mut state = self.lock();
        if state.followers.len() >= MAX_FOLLOWERS {
            return Err(Status::resource_exhausted(format!(
                "{MAX_FOLLOWERS} clients follow this turn already: end one of them first"
            )));
        }
        let mut chunks = first(&state.at);
        let now = Timestamp::now().as_millis().unsigned_abs();
        let waiting = state.pending.values().filter(|approval| approval.expires_unix_ms > now);
        chunks.extend(waiting.cloned().map(Kind::Approval));
        // A few, and small: a follower that does not even take these is bounded by how many may follow.
        let chunks = chunks.into_iter().map(|chunk| (Arc::new(chunk), 0)).collect();
        let (waiting, end) = (self.waiting.clone(), state.end.clone());
        let queue = Queue { chunks, waiting, end, ..Queue::default() };
        let queue = Arc::new(Mutex::new(queue));
        if state.end.is_none() {
            state.followers.push(Arc::clone(&queue));
        }
        Ok(Following { queue, metrics: Arc::clone(&self.metrics) })
    }

    /// Whether the turn said its end, which is not told yet.
    pub(crate) fn has_last(&self) -> bool {
        self.lock().last.is_some()
    }

    /// Tells the end that the turn said.
    pub(crate) fn finish(&self) {
        let last = self.lock().last.take();
        if let Some(last) = last {
            self.end(End::Told(Arc::new(last)));
        }
    }

    /// Returns when it has ended.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// The agent ends, and the turn is left as it is: whoever follows is told so.
    pub(crate) fn leave(&self, why: &str) {
        self.end(End::Left(why.to_owned()));
    }

    fn end(&self, end: End) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        for follower in std::mem::take(&mut state.followers) {
            let mut queue = lock(&follower);
            queue.end = Some(end.clone());
            queue.wake();
        }
        state.end = Some(end);
        drop(state);
        self.over.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Listener for Hub {
    fn hear(&self, chunk: Kind) {
        self.metrics.heard(&chunk);
        let mut state = self.lock();
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
            _ => {}
        }
        if state.followers.is_empty() {
            return;
        }
        let (bytes, chunk) = (chunk.encoded_len(), Arc::new(chunk));
        state.followers.retain(|follower| lock(follower).push(&chunk, bytes));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No step of what is locked panics halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_piece(chunk: &Kind) -> bool {
    matches!(chunk, Kind::Text(_) | Kind::Thinking(_) | Kind::ToolProgress(_))
}

impl Queue {
    /// One more; says whether the follower stays one.
    fn push(&mut self, chunk: &Arc<Kind>, bytes: usize) -> bool {
        if self.gone {
            return false;
        }
        let (chunks, total) = (self.chunks.len(), self.bytes.saturating_add(bytes));
        let full = if is_piece(chunk) {
            chunks >= MAX_PIECES || total > MAX_PIECE_BYTES
        } else {
            chunks >= MAX_WAITING || total > MAX_WAITING_BYTES
        };
        // With all others, too.
        if full || !self.waiting.take(bytes) {
            if is_piece(chunk) {
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

    /// The next one. Whoever takes it last gets it as it is.
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
        "{lost} pieces of text are missing here, since this reader is too slow: the end has all of it"
    );
    Notice { level: "warn".to_owned(), text, discard_text: false }
}

/// The chunks of a turn, to one follower. Lets go when it is dropped.
#[derive(Debug)]
pub(crate) struct Following {
    queue: Arc<Mutex<Queue>>,
    metrics: Arc<Metrics>,
}

impl Stream for Following {
    type Item = Result<Chunk, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = lock(&self.queue);
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
            self.metrics.lost(lost);
            return Poll::Ready(Some(Ok(Chunk { kind: Some(Kind::Notice(missing(lost))) })));
        }
        let Some(end) = queue.end.take() else {
            queue.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        queue.gone = true;
        Poll::Ready(Some(match end {
            End::Told(chunk) => Ok(Chunk { kind: Some(Arc::unwrap_or_clone(chunk)) }),
            End::Left(why) => Err(Status::unavailable(why)),
        }))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut queue = lock(&self.queue);
        queue.gone = true;
        // Nobody takes it any more.
        queue.chunks.clear();
        let bytes = std::mem::take(&mut queue.bytes);
        queue.waiting.give_back(bytes);
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
