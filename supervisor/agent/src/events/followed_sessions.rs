//! The store's sessions; the feed is told of each write.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_event_bus::{EventBus, EventKind, Payload, Subject};
use talon_proto::agent::SessionIdle;
use talon_store::{
    Compaction, Error, Expected, ExportedSession, Message, MessageHit, NewMessage, NewSession, Page,
    PageRequest, Session, SessionChange, SessionFilter, SessionId, SessionQuery, SessionState, Sessions,
    Timestamp, View,
};

use super::feed::{SessionChanges, SessionFeed};
use crate::journal::SessionFact;
use crate::subagent::is_task_sender;

/// The most senders that are known by session. 16,384: some MiB; beyond that all are looked up anew.
const MAX_KNOWN: usize = 16_384;

/// The sessions of the store. All writers of the agent write through this, so that no follower misses anything.
pub(crate) struct FollowedSessions {
    inner: Arc<dyn Sessions>,
    feed: SessionFeed,
    bus: EventBus,
    senders: Mutex<HashMap<SessionId, Arc<str>>>,
}

impl FollowedSessions {
    pub(crate) fn new(inner: Arc<dyn Sessions>, feed: SessionFeed, bus: EventBus) -> Arc<Self> {
        Arc::new(Self { inner, feed, bus, senders: Mutex::default() })
    }

    fn know(&self, id: SessionId, sender: &str) {
        let mut senders = self.senders.lock();
        if senders.len() >= MAX_KNOWN {
            senders.clear();
        }
        senders.insert(id, sender.into());
    }

    /// A session's sender never changes.
    async fn sender(&self, id: SessionId) -> Option<Arc<str>> {
        if let Some(known) = self.senders.lock().get(&id) {
            return Some(Arc::clone(known));
        }
        // Without it followers by sender learn of this session with its next message.
        let session = self.inner.get(id).await.ok().flatten()?;
        self.know(id, &session.sender);
        Some(session.sender.into())
    }

    /// Tells that these messages are in the store.
    async fn tell(&self, id: SessionId, messages: &[Message]) {
        let (Some(first), Some(last)) = (messages.first(), messages.last()) else { return };
        if let Some(live) = self.feed.live_turn(id) {
            live.stored(last.sequence);
        }
        self.tell_news(id, SessionChanges { first: Some(first.sequence), deleted: false }).await;
    }

    async fn tell_news(&self, id: SessionId, news: SessionChanges) {
        if !self.feed.is_followed() {
            return;
        }
        let sender = if self.feed.needs_senders() { self.sender(id).await } else { None };
        // Tasks of sub-agents are parts of turns.
        let known = self.senders.lock().get(&id).cloned().or(sender);
        if !known.as_deref().is_some_and(is_task_sender) {
            self.feed.tell(id, known.as_deref(), news);
        }
    }
}

#[async_trait]
impl Sessions for FollowedSessions {
    async fn create(&self, session: NewSession) -> Result<Session, Error> {
        let session = self.inner.create(session).await?;
        self.know(session.id, &session.sender);
        Ok(session)
    }

    async fn get(&self, id: SessionId) -> Result<Option<Session>, Error> {
        self.inner.get(id).await
    }

    async fn list(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<Session>, Error> {
        self.inner.list(filter, page).await
    }

    async fn count(&self, sender: &str, most: u32) -> Result<u32, Error> {
        self.inner.count(sender, most).await
    }

    async fn append(
        &self,
        id: SessionId,
        expected: Expected,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Message>, Error> {
        // Before it is in the store: a follower that has read it there gets no piece of it any more.
        if let Some(live) = self.feed.live_turn(id) {
            live.store_attempt();
        }
        let appended = self.inner.append(id, expected, messages).await?;
        self.tell(id, &appended).await;
        Ok(appended)
    }

    async fn note(&self, id: SessionId, messages: Vec<NewMessage>) -> Result<Vec<Message>, Error> {
        let noted = self.inner.note(id, messages).await?;
        self.tell(id, &noted).await;
        Ok(noted)
    }

    async fn keyed(&self, id: SessionId, key: &str) -> Result<Option<Message>, Error> {
        self.inner.keyed(id, key).await
    }

    async fn messages(&self, id: SessionId, view: View, page: &PageRequest) -> Result<Page<Message>, Error> {
        self.inner.messages(id, view, page).await
    }

    async fn compact(&self, id: SessionId, expected: Expected, with: Compaction) -> Result<Message, Error> {
        let summary = self.inner.compact(id, expected, with).await?;
        self.tell(id, std::slice::from_ref(&summary)).await;
        Ok(summary)
    }

    async fn update(&self, id: SessionId, change: SessionChange) -> Result<Session, Error> {
        self.inner.update(id, change).await
    }

    async fn idle(
        &self,
        since: Timestamp,
        limit: u32,
        note: Option<NewMessage>,
    ) -> Result<Vec<SessionId>, Error> {
        let noted = note.is_some();
        let idle = self.inner.idle(since, limit, note).await?;
        let is_heard = (noted && self.feed.is_followed()) || self.bus.is_watched(EventKind::SessionIdle);
        for id in idle.iter().filter(|_| is_heard) {
            let Ok(Some(session)) = self.inner.get(*id).await else { continue };
            let subject = Subject { sender: &session.sender, session: &id.to_string() };
            self.bus.emit(subject, Payload::SessionIdle(SessionIdle {}));
            if !noted {
                continue;
            }
            // It may have gone on since: what is new begins there at the latest.
            let first = Some(session.next_sequence.saturating_sub(1));
            self.tell_news(*id, SessionChanges { first, deleted: false }).await;
        }
        Ok(idle)
    }

    async fn resume(&self, id: SessionId) -> Result<Session, Error> {
        let was_idle = self.inner.get(id).await?.is_some_and(|session| session.state == SessionState::Idle);
        let session = self.inner.resume(id).await?;
        if was_idle {
            self.note(id, vec![SessionFact::Resumed.into_message()]).await?;
        }
        Ok(session)
    }

    async fn search(&self, query: &SessionQuery, page: &PageRequest) -> Result<Page<MessageHit>, Error> {
        self.inner.search(query, page).await
    }

    async fn delete(&self, id: SessionId) -> Result<bool, Error> {
        // Its sender is not known any more afterwards.
        if self.feed.needs_senders() {
            self.sender(id).await;
        }
        let deleted = self.inner.delete(id).await?;
        if deleted {
            self.tell_news(id, SessionChanges { first: None, deleted: true }).await;
            self.senders.lock().remove(&id);
        }
        Ok(deleted)
    }

    async fn export(&self, id: SessionId) -> Result<ExportedSession, Error> {
        self.inner.export(id).await
    }

    async fn import(&self, session: ExportedSession) -> Result<bool, Error> {
        let (id, sender) = (session.session.id, session.session.sender.clone());
        let has_messages = !session.messages.is_empty();
        let imported = self.inner.import(session).await?;
        self.know(id, &sender);
        if imported && has_messages {
            self.tell_news(id, SessionChanges { first: Some(1), deleted: false }).await;
        }
        Ok(imported)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talon_event_bus::Delivery;
    use talon_store::{Engine, Role, StoreOptions};

    use super::*;

    // Promises: GW-153
    #[tokio::test]
    async fn a_session_that_goes_idle_is_an_event_of_its_sender() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("agent/agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let bus = EventBus::default();
        let sessions = FollowedSessions::new(store.sessions(), SessionFeed::default(), bus.clone());
        let new = NewSession { sender: "ada".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
        let id = sessions.create(new).await.expect("created").id;
        let said = vec![NewMessage::text(Role::User, "hello")];
        sessions.append(id, Expected::Any, said).await.expect("appended");
        let mut watch = bus.subscribe(EventKind::SessionIdle).expect("room");
        let later = Timestamp::from_millis(Timestamp::now().as_millis() + 60_000);
        assert!(
            sessions.idle(later.before(Duration::from_secs(120)), 10, None).await.expect("idle").is_empty()
        );
        assert_eq!(sessions.idle(later, 10, None).await.expect("idle"), [id]);
        let Some(Delivery::Event(event)) = watch.try_next() else { panic!("an event") };
        assert_eq!((event.sender.as_str(), event.session_id.as_str()), ("ada", id.to_string().as_str()));
        assert_eq!(watch.try_next(), None);
    }
}
