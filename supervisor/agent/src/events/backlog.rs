//! A session's events from the store.

use talon_proto::agent::Event;
use talon_store::{Error, PageRequest, Session, SessionId, Sessions, View};

use crate::journal::{EVENTS_PER_MESSAGE, EventTranslator};

/// How many messages are read at once. 32: a follower holds their events until it is read, some KiB as a rule.
const PAGE: u32 = 32;
/// How many messages before a cursor are read at first to know what the next ones belong to, and by what factor more if
/// that does not suffice: usually the begin of the turn is among them.
const LOOK_BACK: u64 = 64;
const LOOK_BACK_FACTOR: u64 = 8;

/// Where a follower is in a session's log.
#[derive(Debug)]
pub(super) struct Backlog {
    session: Session,
    translator: EventTranslator,
    /// The last message that was read.
    message: u64,
    /// Events up to this one were told.
    after: u64,
}

/// Some events, and whether the store has more.
#[derive(Debug)]
pub(super) struct ReadEvents {
    pub(super) events: Vec<Event>,
    pub(super) more: bool,
}

impl Backlog {
    /// Begins after an event. `None` if there is no such session.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn open(
        sessions: &dyn Sessions,
        id: SessionId,
        after: u64,
    ) -> Result<Option<Self>, Error> {
        let Some(session) = sessions.get(id).await? else { return Ok(None) };
        // The message of that event may have more events.
        let message = (after / EVENTS_PER_MESSAGE).saturating_sub(1);
        let mut look_back = LOOK_BACK;
        loop {
            let from = message.saturating_sub(look_back);
            let translator = read_between(sessions, &session, from, message).await?;
            if from == 0 || translator.is_anchored() {
                return Ok(Some(Self { session, translator, message, after }));
            }
            look_back = look_back.saturating_mul(LOOK_BACK_FACTOR);
        }
    }

    /// The last message that was read.
    pub(super) fn message(&self) -> u64 {
        self.message
    }

    /// The last event that was told, or that all of the messages before could be.
    pub(super) fn after(&self) -> u64 {
        self.after
    }

    /// Reads the next events; there may be none although the store has more.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn read(&mut self, sessions: &dyn Sessions) -> Result<ReadEvents, Error> {
        let page = PageRequest::after_message(self.message, PAGE);
        let page = sessions.messages(self.session.id, View::All, &page).await?;
        let mut events = Vec::new();
        for message in &page.items {
            let told = self.translator.events(&self.session, message);
            events.extend(told.into_iter().filter(|event| event.sequence > self.after));
            self.message = message.sequence;
        }
        // The last sequence that a message up to here can have.
        if self.message > 0 {
            self.after = self.after.max((self.message + 1) * EVENTS_PER_MESSAGE - 1);
        }
        Ok(ReadEvents { events, more: page.next.is_some() })
    }
}

/// What a translator knows after the messages above `from` up to `last`.
async fn read_between(
    sessions: &dyn Sessions,
    session: &Session,
    from: u64,
    last: u64,
) -> Result<EventTranslator, Error> {
    let (mut translator, mut at) = (EventTranslator::default(), from);
    while at < last {
        let page = PageRequest::after_message(at, PAGE);
        let page = sessions.messages(session.id, View::All, &page).await?;
        for message in page.items.iter().filter(|message| message.sequence <= last) {
            translator.events(session, message);
        }
        let Some(end) = page.items.last() else { break };
        at = end.sequence;
    }
    Ok(translator)
}
