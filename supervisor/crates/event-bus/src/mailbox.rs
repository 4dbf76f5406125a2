//! The queue of one subscriber.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;
use talon_proto::agent::BusEvent;
use tokio::sync::Notify;

use super::kind::EventKind;
use super::kind_set::KindSet;

/// How many events may wait for a subscriber. 512: some seconds of a busy agent. Beyond it the oldest goes and is counted. Subscribers
/// share an event, which has some KiB at most.
pub const MAX_WAITING: usize = 512;

/// What a subscriber gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    /// An event.
    Event(Arc<BusEvent>),
    /// So many events are missing here, since the subscriber was too slow.
    Missed(u64),
}

/// What a subscriber wants.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) kinds: KindSet,
    /// Only what belongs to this sender; `None`: to anybody, or nobody.
    pub(super) sender: Option<Arc<str>>,
}

impl Filter {
    fn takes(&self, kind: EventKind, event: &BusEvent) -> bool {
        self.kinds.contains(kind) && self.sender.as_deref().is_none_or(|sender| sender == event.sender)
    }
}

/// A bounded queue: the emitter pushes, one subscriber takes.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) filter: Filter,
    /// It is for one event alone.
    once: bool,
    state: Mutex<MailboxState>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct MailboxState {
    waiting: VecDeque<Arc<BusEvent>>,
    /// How many went since the subscriber last took something; they were before what waits.
    missed: u64,
    closed: bool,
}

/// What became of an event that was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It is not for this subscriber.
    NotWanted,
    /// It waits.
    Waits,
    /// It waits, and another one went for it.
    InPlaceOfAnother,
    /// It waits, and the subscriber gets no other.
    Last,
}

impl Mailbox {
    pub(super) fn new(filter: Filter, once: bool) -> Arc<Self> {
        Arc::new(Self { filter, once, state: Mutex::default(), filled: Notify::new() })
    }

    pub(super) fn push(&self, kind: EventKind, event: &Arc<BusEvent>) -> Pushed {
        if !self.filter.takes(kind, event) {
            return Pushed::NotWanted;
        }
        let mut state = self.state.lock();
        if state.closed {
            return Pushed::NotWanted;
        }
        let is_full = state.waiting.len() >= MAX_WAITING;
        if is_full {
            state.waiting.pop_front();
            state.missed += 1;
        }
        state.waiting.push_back(Arc::clone(event));
        state.closed = self.once;
        drop(state);
        self.filled.notify_one();
        match (self.once, is_full) {
            (true, _) => Pushed::Last,
            (false, true) => Pushed::InPlaceOfAnother,
            (false, false) => Pushed::Waits,
        }
    }

    /// Nothing comes any more, and what waits is not given out.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        *state = MailboxState { closed: true, ..MailboxState::default() };
        drop(state);
        self.filled.notify_one();
    }

    /// The next delivery; `None` after the last one. Cancel safe.
    pub(super) async fn next(&self) -> Option<Delivery> {
        loop {
            if let Poll::Ready(next) = self.take() {
                return next;
            }
            self.filled.notified().await;
        }
    }

    /// What is there now; `None`: nothing comes any more.
    pub(super) fn take(&self) -> Poll<Option<Delivery>> {
        let mut state = self.state.lock();
        if state.missed > 0 {
            return Poll::Ready(Some(Delivery::Missed(std::mem::take(&mut state.missed))));
        }
        match state.waiting.pop_front() {
            Some(event) => Poll::Ready(Some(Delivery::Event(event))),
            None if state.closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
