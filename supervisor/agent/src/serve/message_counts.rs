//! How many messages sessions have, as people see them.

use std::collections::HashMap;

use parking_lot::Mutex;
use talon_store::{Error, Message, PageRequest, Session, SessionId, Sessions, View};

use crate::journal::ShownCount;

/// Sessions whose count is known without reading them. 4096: twenty pages of a list, some 500 KiB. Beyond it any one of them is forgotten for
/// a new one, and counted again when it is next shown.
const MAX_SESSIONS: usize = 4096;

/// How many messages sessions had when they were last counted. Of a session that was written to since, only what was written is read, unless a
/// summary was: then those that it stands for are not shown any more.
#[derive(Debug, Default)]
pub(super) struct MessageCounts(Mutex<HashMap<SessionId, MessageCount>>);

#[derive(Debug, Clone, Copy)]
struct MessageCount {
    /// The sequence that the next message has.
    next_sequence: u64,
    count: u64,
    /// How many of them are before the last message, of which what follows decides whether it is shown.
    before: u64,
    /// Its sequence.
    last: Option<u64>,
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
        let counted_on = match known {
            Some(known) if known.next_sequence == next_sequence => return Ok(known.count),
            Some(known) if known.next_sequence < next_sequence => known.count_on(sessions, session).await?,
            _ => None,
        };
        let counted = match counted_on {
            Some(counted) => counted,
            None => count_live(sessions, session).await?,
        };
        let (before, last) = counted.before_last();
        let count = counted.total();
        let mut counts = self.0.lock();
        if counts.len() >= MAX_SESSIONS && !counts.contains_key(&session.id) {
            let forgotten = counts.keys().next().copied();
            if let Some(id) = forgotten {
                counts.remove(&id);
            }
        }
        counts.insert(session.id, MessageCount { next_sequence, count, before, last });
        Ok(count)
    }
}

impl MessageCount {
    /// Counts what was written since; `None` if a summary was.
    async fn count_on(self, sessions: &dyn Sessions, session: &Session) -> Result<Option<ShownCount>, Error> {
        let new = self.next_sequence..session.next_sequence;
        let is_new = |message: &Message| new.contains(&message.sequence);
        let first = self.last.unwrap_or(self.next_sequence);
        let mut counted = ShownCount::after(self.before);
        // All of them, in the order of writing: in the live view a summary stands before what it does not stand for.
        let mut page = PageRequest::after_message(first.saturating_sub(1), u32::MAX);
        loop {
            let mut found = sessions.messages(session.id, View::All, &page).await?;
            found.items.retain(|message| message.sequence == first || is_new(message));
            if found.items.iter().any(|message| is_new(message) && message.summarizes.is_some()) {
                return Ok(None);
            }
            counted.add(found.items);
            let Some(next) = found.next else { return Ok(Some(counted)) };
            page = PageRequest::after(next, u32::MAX);
        }
    }
}

/// Counts all messages of a session that it had when it was read.
async fn count_live(sessions: &dyn Sessions, session: &Session) -> Result<ShownCount, Error> {
    let mut counted = ShownCount::default();
    let mut page = PageRequest::first(u32::MAX);
    loop {
        let mut found = sessions.messages(session.id, View::Live, &page).await?;
        // What came since is counted when the session is next shown.
        found.items.retain(|message| message.sequence < session.next_sequence);
        counted.add(found.items);
        let Some(next) = found.next else { return Ok(counted) };
        page = PageRequest::after(next, u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use talon_store::{Compaction, Engine, Expected, NewMessage, NewSession, Role, StoreOptions};

    use super::*;
    use crate::journal::{Journal as _, JournalEntry, SessionFact, StoreJournal};

    // Promises: GW-274
    #[tokio::test]
    async fn it_counts_on_as_it_counts_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("private").join("agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let sessions = store.sessions();
        let new = NewSession { sender: "ada".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
        let id = sessions.create(new).await.expect("a session").id;
        let counts = MessageCounts::default();
        for step in 0..32_u64 {
            let session = sessions.get(id).await.expect("read").expect("the session");
            let journal = StoreJournal::new(Arc::clone(&sessions), id);
            let text = |role| NewMessage::text(role, format!("text {step}"));
            match step % 8 {
                0 => {
                    let received = JournalEntry::Received { text: "Hello?".to_owned(), with: Box::default() };
                    journal.add(step, received).await.expect("written");
                }
                // Then the message before is not shown any more.
                1 => {
                    let asked = JournalEntry::Asked { text: "Hello?".to_owned(), with: Box::default() };
                    journal.add(step - 1, asked).await.expect("written");
                }
                2 => {
                    let fact = SessionFact::Updated { fields: vec!["model".to_owned()] };
                    sessions.note(id, vec![fact.into_message()]).await.expect("written");
                }
                6 => {
                    let through = session.next_sequence.saturating_sub(3);
                    let with = Compaction { through, summary: text(Role::System) };
                    sessions.compact(id, Expected::Any, with).await.expect("written");
                }
                _ => {
                    let messages = vec![text(Role::User), text(Role::Assistant)];
                    sessions.append(id, Expected::Any, messages).await.expect("written");
                }
            }
            // Of some steps several are counted at once.
            if step % 5 == 3 {
                continue;
            }
            let session = sessions.get(id).await.expect("read").expect("the session");
            let anew = MessageCounts::default().of(&*sessions, &session).await.expect("counted");
            assert_eq!(counts.of(&*sessions, &session).await.expect("counted"), anew, "step {step}");
            assert_eq!(counts.of(&*sessions, &session).await.expect("counted"), anew, "step {step}, known");
        }
    }

    // Promises: GW-274
    #[tokio::test]
    async fn one_session_is_forgotten_for_another_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("private").join("agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let sessions = store.sessions();
        let counts = MessageCounts::default();
        let known = MessageCount { next_sequence: 2, count: 1, before: 0, last: Some(1) };
        while counts.0.lock().len() < MAX_SESSIONS {
            counts.0.lock().insert(SessionId::generate(), known);
        }
        let new = NewSession { sender: "ada".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
        let id = sessions.create(new).await.expect("a session").id;
        let said = vec![NewMessage::text(Role::User, "Hello?")];
        sessions.append(id, Expected::Any, said).await.expect("written");
        let session = sessions.get(id).await.expect("read").expect("the session");
        assert_eq!(counts.of(&*sessions, &session).await.expect("counted"), 1);
        let counts = counts.0.lock();
        assert!(counts.len() == MAX_SESSIONS && counts.contains_key(&id));
    }
}
