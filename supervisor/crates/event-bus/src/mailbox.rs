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
    /// So many events are missing here, since the subscriber was too slow, or since their emitter did not hear of them.
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
    waiting: VecDeque<Delivery>,
    /// How many went since the subscriber last took something; they were before what waits.
    missed: u64,
    closed: bool,
}

impl MailboxState {
    /// Lets a delivery wait behind the others. Returns how many events went for it.
    fn push(&mut self, delivery: Delivery) -> u64 {
        let mut gone = 0;
        if self.waiting.len() >= MAX_WAITING {
            match self.waiting.pop_front() {
                Some(Delivery::Event(_)) => (self.missed, gone) = (self.missed + 1, 1),
                Some(Delivery::Missed(before)) => self.missed = self.missed.saturating_add(before),
                None => {}
            }
        }
        self.waiting.push_back(delivery);
        gone
    }
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
        let is_full = state.push(Delivery::Event(Arc::clone(event))) > 0;
        state.closed = self.once;
        drop(state);
        self.filled.notify_one();
        match (self.once, is_full) {
            (true, _) => Pushed::Last,
            (false, true) => Pushed::InPlaceOfAnother,
            (false, false) => Pushed::Waits,
        }
    }

    /// Says that events of these kinds are missing here that belong to nobody. Returns how many are missing now that were not.
    pub(super) fn note_missed(&self, kinds: KindSet, events: u64) -> u64 {
        if self.once || self.filter.sender.is_some() || !self.filter.kinds.intersects(kinds) {
            return 0;
        }
        let mut state = self.state.lock();
        if state.closed || events == 0 {
            return 0;
        }
        let gone = match state.waiting.back_mut() {
            None => {
                state.missed = state.missed.saturating_add(events);
                0
            }
            Some(Delivery::Missed(before)) => {
                *before = before.saturating_add(events);
                0
            }
            Some(Delivery::Event(_)) => state.push(Delivery::Missed(events)),
        };
        drop(state);
        self.filled.notify_one();
        events.saturating_add(gone)
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
            Some(next) => Poll::Ready(Some(next)),
            None if state.closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
