//! How many messages sessions have, as people see them.

use std::collections::HashMap;

use parking_lot::Mutex;
use talon_store::{Error, PageRequest, Session, SessionId, Sessions, View};

use crate::journal::ShownCount;

/// Sessions whose count is known without reading them. 4096: twenty pages of a list, some 200 KiB. Beyond it all are counted again when
/// they are next shown.
const MAX_SESSIONS: usize = 4096;

/// How many messages sessions had when they were last counted. A session is counted again only after something was written to it.
#[derive(Debug, Default)]
pub(super) struct MessageCounts(Mutex<HashMap<SessionId, MessageCount>>);

#[derive(Debug, Clone, Copy)]
struct MessageCount {
    /// The sequence that the next message has.
    next_sequence: u64,
    count: u64,
}

impl MessageCounts {
    /// How many messages of a session people are shown: neither what a summary stands for, nor the journal's bookkeeping.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) async fn of(&self, sessions: &dyn Sessions, session: &Session) -> Result<u64, Error> {
        let next_sequence = session.next_sequence;
        if next_sequence <= 1 {
            return Ok(0);
        }
        let known = self.0.lock().get(&session.id).copied();
        if let Some(known) = known.filter(|known| known.next_sequence == next_sequence) {
            return Ok(known.count);
        }
        let mut counted = ShownCount::default();
        let mut page = PageRequest::first(u32::MAX);
        loop {
            let found = sessions.messages(session.id, View::Live, &page).await?;
            counted.add(found.items);
            let Some(next) = found.next else { break };
            page = PageRequest::after(next, u32::MAX);
        }
        let count = counted.total();
        let mut counts = self.0.lock();
        if counts.len() >= MAX_SESSIONS {
            counts.clear();
        }
        counts.insert(session.id, MessageCount { next_sequence, count });
        Ok(count)
    }
}
