//! Emits events, and knows who wants them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use talon_proto::agent::BusEvent;
use talon_proto::agent::bus_event::Payload;

use super::kind::EventKind;
use super::kind_set::KindSet;
use super::mailbox::{Filter, Mailbox, Pushed};
use super::subscription::Subscription;

/// The most subscribers of a bus. 4096: an event is pushed to each that wants it, which takes an emitter some tenths of a millisecond then.
/// One more is refused. What clients may take of them is a matter of configuration (`agent.limits.follows`).
pub const MAX_SUBSCRIBERS: usize = 4096;

/// There is no room for another subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_SUBSCRIBERS} subscribers have the event bus already: end one of them")]
pub struct TooManySubscribersError;

/// To whom an event belongs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'s> {
    /// Whose it is; empty: nobody's.
    pub sender: &'s str,
    /// The session; empty: none.
    pub session: &'s str,
}

impl Subject<'_> {
    /// Of what belongs to nobody, such as a change of a plugin.
    pub const NOBODY: Self = Subject { sender: "", session: "" };
}

/// The bus. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct EventBus(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    subscribers: Mutex<Subscribers>,
    /// The kinds that anybody wants, so that nothing is built for nobody.
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

impl EventBus {
    /// Gives an event to all who want it. Never waits: who does not keep up misses the oldest that wait.
    pub fn emit(&self, subject: Subject<'_>, payload: Payload) {
        let kind = EventKind::of(&payload);
        let mut subscribers = self.0.subscribers.lock();
        subscribers.sequence += 1;
        if !self.is_watched(kind) {
            return;
        }
        let event = Arc::new(BusEvent {
            sequence: subscribers.sequence,
            unix_ms: unix_ms(),
            sender: subject.sender.to_owned(),
            session_id: subject.session.to_owned(),
            payload: Some(payload),
        });
        let before = subscribers.mailboxes.len();
        subscribers.mailboxes.retain(|_, mailbox| match mailbox.push(kind, &event) {
            Pushed::NotWanted | Pushed::Waits => true,
            Pushed::InPlaceOfAnother => {
                self.0.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Pushed::Last => false,
        });
        if subscribers.mailboxes.len() < before {
            self.set_wanted(&subscribers);
        }
    }

    /// Whether anybody wants events of a kind.
    #[must_use]
    pub fn is_watched(&self, kind: EventKind) -> bool {
        self.0.wanted.load(Ordering::Relaxed) & KindSet::from(kind).bits() != 0
    }

    /// Events of these kinds from now on, whomever they belong to.
    ///
    /// # Errors
    /// [`TooManySubscribersError`]
    pub fn subscribe(&self, kinds: impl Into<KindSet>) -> Result<Subscription, TooManySubscribersError> {
        self.add(Filter { kinds: kinds.into(), sender: None }, false)
    }

    /// Those that belong to a sender.
    ///
    /// # Errors
    /// [`TooManySubscribersError`]
    pub fn subscribe_for(
        &self,
        kinds: impl Into<KindSet>,
        sender: Arc<str>,
    ) -> Result<Subscription, TooManySubscribersError> {
        self.add(Filter { kinds: kinds.into(), sender: Some(sender) }, false)
    }

    /// How many subscribe.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.0.subscribers.lock().mailboxes.len()
    }

    /// How many events subscribers missed.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.0.missed.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, filter: Filter, once: bool) -> Result<Subscription, TooManySubscribersError> {
        let mailbox = Mailbox::new(filter, once);
        let mut subscribers = self.0.subscribers.lock();
        if subscribers.mailboxes.len() >= MAX_SUBSCRIBERS {
            return Err(TooManySubscribersError);
        }
        subscribers.last_id += 1;
        let id = subscribers.last_id;
        subscribers.mailboxes.insert(id, Arc::clone(&mailbox));
        self.set_wanted(&subscribers);
        drop(subscribers);
        Ok(Subscription::new(self.clone(), id, mailbox))
    }

    /// Has a subscriber get nothing more, if it is there.
    pub(super) fn remove(&self, id: u64) {
        let mut subscribers = self.0.subscribers.lock();
        let Some(mailbox) = subscribers.mailboxes.remove(&id) else { return };
        self.set_wanted(&subscribers);
        drop(subscribers);
        mailbox.close();
    }

    /// Under the lock of the subscribers.
    fn set_wanted(&self, subscribers: &Subscribers) {
        let all = subscribers.mailboxes.values().map(|mailbox| mailbox.filter.kinds.bits());
        self.0.wanted.store(all.fold(0, |all, one| all | one), Ordering::Relaxed);
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
