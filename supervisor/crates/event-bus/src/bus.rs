//! Emits events, and gives them to who subscribes.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use talon_proto::agent::BusEvent;
use talon_proto::agent::bus_event::Payload;

use super::kind::EventKind;
use super::kind_set::KindSet;
use super::mailbox::Filter;
use super::registry::{Registry, TooManySubscribersError};
use super::subscription::Subscription;

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
pub struct EventBus(Arc<Registry>);

impl EventBus {
    /// Gives an event to all who want it. Never waits: who does not keep up misses the oldest that wait.
    pub fn emit(&self, subject: Subject<'_>, payload: Payload) {
        self.0.push(EventKind::of(&payload), |sequence| BusEvent {
            sequence,
            unix_ms: unix_ms(),
            sender: subject.sender.to_owned(),
            session_id: subject.session.to_owned(),
            payload: Some(payload),
        });
    }

    /// The same with a payload that is made only if anybody wants its kind.
    pub fn emit_with(&self, subject: Subject<'_>, kind: EventKind, payload: impl FnOnce() -> Payload) {
        if !self.is_watched(kind) {
            return self.0.skip();
        }
        let payload = payload();
        debug_assert_eq!(EventKind::of(&payload), kind);
        self.emit(subject, payload);
    }

    /// Tells all who want nobody's events of any of these kinds that some are missing here, since their emitter did not hear of them.
    pub fn note_missed(&self, kinds: impl Into<KindSet>, events: u64) {
        self.0.note_missed(kinds.into(), events);
    }

    /// Whether anybody wants events of a kind.
    #[must_use]
    pub fn is_watched(&self, kind: EventKind) -> bool {
        self.0.is_watched(kind)
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
        self.0.len()
    }

    /// How many events subscribers missed.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.0.missed()
    }

    pub(super) fn add(&self, filter: Filter, once: bool) -> Result<Subscription, TooManySubscribersError> {
        let (id, mailbox) = self.0.add(filter, once)?;
        Ok(Subscription::new(Arc::clone(&self.0), id, mailbox))
    }

    /// Has a subscriber get nothing more, if it is there.
    pub(super) fn remove(&self, id: u64) {
        self.0.remove(id);
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
