//! The subscribers of a bus.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use talon_proto::agent::BusEvent;

use super::kind::EventKind;
use super::kind_set::KindSet;
use super::mailbox::{Filter, Mailbox, Pushed};

/// The most subscribers of a bus. 4096: an event is pushed to each that wants it, which takes an emitter some tenths of a millisecond then.
/// One more is refused. What clients may take of them is a matter of configuration (`agent.limits.follows`).
pub const MAX_SUBSCRIBERS: usize = 4096;

/// There is no room for another subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_SUBSCRIBERS} subscribers have the event bus already: end one of them")]
pub struct TooManySubscribersError;

#[derive(Debug, Default)]
pub(super) struct Registry {
    subscribers: Mutex<Subscribers>,
    /// The kinds that anybody wants.
    wanted: AtomicU64,
    missed: AtomicU64,
}

#[derive(Debug, Default)]
struct Subscribers {
    /// Of the last event.
    sequence: u64,
    last_id: u64,
    mailboxes: BTreeMap<u64, Arc<Mailbox>>,
}

impl Registry {
    /// Numbers an event, and gives it to all who want it; `event` makes it of its number, if anybody does.
    pub(super) fn push(&self, kind: EventKind, event: impl FnOnce(u64) -> BusEvent) {
        let mut subscribers = self.subscribers.lock();
        subscribers.sequence += 1;
        if !self.is_watched(kind) {
            return;
        }
        let event = Arc::new(event(subscribers.sequence));
        let before = subscribers.mailboxes.len();
        subscribers.mailboxes.retain(|_, mailbox| match mailbox.push(kind, &event) {
            Pushed::NotWanted | Pushed::Waits => true,
            Pushed::InPlaceOfAnother => {
                self.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Pushed::Last => false,
        });
        if subscribers.mailboxes.len() < before {
            self.set_wanted(&subscribers);
        }
    }

    /// Numbers an event that nobody wants.
    pub(super) fn skip(&self) {
        self.subscribers.lock().sequence += 1;
    }

    /// Says to all who want nobody's events of any of these kinds that so many are missing.
    pub(super) fn note_missed(&self, kinds: KindSet, events: u64) {
        for mailbox in self.subscribers.lock().mailboxes.values() {
            self.missed.fetch_add(mailbox.note_missed(kinds, events), Ordering::Relaxed);
        }
    }

    pub(super) fn is_watched(&self, kind: EventKind) -> bool {
        self.wanted.load(Ordering::Relaxed) & KindSet::from(kind).bits() != 0
    }

    pub(super) fn len(&self) -> usize {
        self.subscribers.lock().mailboxes.len()
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Adds a subscriber, and returns by what it is known.
    pub(super) fn add(
        &self,
        filter: Filter,
        once: bool,
    ) -> Result<(u64, Arc<Mailbox>), TooManySubscribersError> {
        let mailbox = Mailbox::new(filter, once);
        let mut subscribers = self.subscribers.lock();
        if subscribers.mailboxes.len() >= MAX_SUBSCRIBERS {
            return Err(TooManySubscribersError);
        }
        subscribers.last_id += 1;
        let id = subscribers.last_id;
        subscribers.mailboxes.insert(id, Arc::clone(&mailbox));
        self.wanted.fetch_or(mailbox.filter.kinds.bits(), Ordering::Relaxed);
        Ok((id, mailbox))
    }

    /// Has a subscriber get nothing more, if it is there.
    pub(super) fn remove(&self, id: u64) {
        let mut subscribers = self.subscribers.lock();
        let Some(mailbox) = subscribers.mailboxes.remove(&id) else { return };
        self.set_wanted(&subscribers);
        drop(subscribers);
        mailbox.close();
    }

    /// Under the lock of the subscribers.
    fn set_wanted(&self, subscribers: &Subscribers) {
        let all = subscribers.mailboxes.values().map(|mailbox| mailbox.filter.kinds.bits());
        self.wanted.store(all.fold(0, |all, one| all | one), Ordering::Relaxed);
    }
}
