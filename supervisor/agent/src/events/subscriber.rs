//! One follower's events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use talon_proto::agent::event::Kind;
use talon_proto::agent::{CaughtUp, Event, SessionDeleted};
use talon_store::{Error, SessionId, Sessions, Timestamp};

use super::backlog::Backlog;
use super::feed::{Audience, FeedSubscription, SessionChanges, SessionFeed};
use super::live_turn::{BehindStore, LiveCursor};
use crate::journal::EVENTS_PER_MESSAGE;

/// The most sessions of which one follower holds a cursor. 65,536 cursors are some MiB; who follows everybody's may
/// begin again with those that it still cares for.
const MAX_SESSIONS: usize = 65_536;

/// Why a follower gets no more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// It holds too many cursors.
    #[error(
        "{MAX_SESSIONS} sessions are the most that one stream follows: begin again with cursors of those that matter"
    )]
    TooMany,
}

/// Gives the events of one follower, one after another. It reads only when it is asked: what is not read yet is in the
/// store, and what is not durable is joined.
pub(crate) struct Subscriber {
    sessions: Arc<dyn Sessions>,
    feed: SessionFeed,
    subscription: FeedSubscription,
    followed: HashMap<SessionId, SessionPosition>,
    /// Sessions to look at, each once.
    todo: VecDeque<(SessionId, SessionChanges)>,
    /// What is next.
    ready: VecDeque<Event>,
    live: bool,
    is_caught_up: bool,
}

/// A session that is followed.
#[derive(Debug)]
struct SessionPosition {
    /// The last event that was told.
    after: u64,
    /// Open while there is something to read.
    backlog: Option<Box<Backlog>>,
    live: LiveCursor,
}

impl Subscriber {
    /// Follows sessions that are there, each after an event, and others of an audience from now on.
    pub(crate) fn new(
        sessions: Arc<dyn Sessions>,
        feed: &SessionFeed,
        cursors: &[(SessionId, u64)],
        audience: Audience,
        live: bool,
    ) -> Self {
        let named: Vec<SessionId> = cursors.iter().map(|(id, _)| *id).collect();
        // Before the first look at the store, so that nothing between is missed.
        let subscription = feed.follow(&named, audience);
        let followed = |after| SessionPosition { after, backlog: None, live: LiveCursor::default() };
        // Each is looked at once, for what was recorded before.
        let look = |(id, after): &(SessionId, u64)| {
            (*id, SessionChanges { first: Some(after / EVENTS_PER_MESSAGE), deleted: false })
        };
        Self {
            sessions,
            feed: feed.clone(),
            subscription,
            followed: cursors.iter().map(|(id, after)| (*id, followed(*after))).collect(),
            todo: cursors.iter().map(look).collect(),
            ready: VecDeque::new(),
            live,
            is_caught_up: false,
        }
    }

    /// Tells first that these are not there.
    pub(crate) fn tell_missing(&mut self, ids: impl IntoIterator<Item = String>) {
        self.ready.extend(ids.into_iter().map(deleted));
    }

    /// The next event, as soon as there is one. Cancel safe: what was read is not lost.
    ///
    /// # Errors
    /// [`FollowError`]; then there is no next one.
    pub(crate) async fn next(&mut self) -> Result<Event, FollowError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if let Some((id, news)) = self.todo.front().copied() {
                self.look(id, news).await?;
                continue;
            }
            if !std::mem::replace(&mut self.is_caught_up, true) {
                let unix_ms = Timestamp::now().as_millis().unsigned_abs();
                return Ok(Event { unix_ms, kind: Some(Kind::CaughtUp(CaughtUp {})), ..Event::default() });
            }
            self.todo.extend(self.subscription.take());
            if self.todo.is_empty() {
                self.subscription.filled().await;
            }
        }
    }

    /// Looks at the first session of those to look at.
    async fn look(&mut self, id: SessionId, news: SessionChanges) -> Result<(), FollowError> {
        if news.deleted {
            self.leave(id);
            return Ok(());
        }
        if !self.followed.contains_key(&id) {
            if self.followed.len() >= MAX_SESSIONS {
                return Err(FollowError::TooMany);
            }
            // From its first new message on; a turn that only moves has none yet.
            let Some(first) = news.first else {
                self.todo.pop_front();
                return Ok(());
            };
            let after = (first * EVENTS_PER_MESSAGE).saturating_sub(1);
            self.followed.insert(id, SessionPosition { after, backlog: None, live: LiveCursor::default() });
        }
        let mut has_more = news.first.is_some();
        if has_more {
            match self.read(id).await? {
                Some(more) => has_more = more,
                None => {
                    self.leave(id);
                    return Ok(());
                }
            }
        }
        let is_behind = !has_more && self.live && self.tell_live(id).is_err();
        if !has_more && self.feed.live_turn(id).is_none() {
            self.close_backlog(id);
        }
        // Others come in between.
        self.todo.pop_front();
        if has_more || is_behind {
            let first = Some(u64::MAX);
            self.todo.push_back((id, SessionChanges { first, deleted: false }));
        }
        Ok(())
    }

    /// Reads some events of the store. Returns whether it has more; `None` if the session is gone.
    async fn read(&mut self, id: SessionId) -> Result<Option<bool>, FollowError> {
        let Some(followed) = self.followed.get_mut(&id) else { return Ok(Some(false)) };
        let mut backlog = match followed.backlog.take() {
            Some(backlog) => backlog,
            None => match Backlog::open(&*self.sessions, id, followed.after).await? {
                Some(backlog) => Box::new(backlog),
                None => return Ok(None),
            },
        };
        let read = match backlog.read(&*self.sessions).await {
            Ok(read) => read,
            Err(Error::NoSession(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        followed.after = backlog.after();
        if read.events.iter().any(|event| ends_attempt(event.kind.as_ref())) {
            followed.live.forget_attempt();
        }
        self.ready.extend(read.events);
        followed.backlog = Some(backlog);
        Ok(Some(read.more))
    }

    /// Tells what is not durable. A session without a turn is left as it is in the store.
    fn tell_live(&mut self, id: SessionId) -> Result<(), BehindStore> {
        let Some(followed) = self.followed.get_mut(&id) else { return Ok(()) };
        let live = self.feed.live_turn(id);
        let turn = live.as_ref().map_or(0, |live| live.turn());
        let news = match &live {
            Some(live) => {
                let message = match &followed.backlog {
                    Some(backlog) => backlog.message(),
                    None => followed.after / EVENTS_PER_MESSAGE,
                };
                live.news(&mut followed.live, message)?
            }
            None => followed.live.settle().into_iter().collect(),
        };
        let unix_ms = Timestamp::now().as_millis().unsigned_abs();
        let session_id = id.to_string();
        let event =
            |kind| Event { session_id: session_id.clone(), turn, unix_ms, kind: Some(kind), sequence: 0 };
        self.ready.extend(news.into_iter().map(event));
        Ok(())
    }

    /// Keeps the cursor alone of a session in which nothing goes on.
    fn close_backlog(&mut self, id: SessionId) {
        if let Some(followed) = self.followed.get_mut(&id) {
            followed.backlog = None;
        }
    }

    fn leave(&mut self, id: SessionId) {
        self.todo.retain(|(other, _)| *other != id);
        if self.followed.remove(&id).is_some() {
            self.ready.push_back(deleted(id.to_string()));
        }
    }
}

/// Whether this is what became of the attempt that a model was making.
fn ends_attempt(kind: Option<&Kind>) -> bool {
    matches!(kind, Some(Kind::Answer(_) | Kind::ToolCall(_) | Kind::Done(_) | Kind::Error(_)))
}

fn deleted(session_id: String) -> Event {
    let unix_ms = Timestamp::now().as_millis().unsigned_abs();
    Event { session_id, unix_ms, kind: Some(Kind::SessionDeleted(SessionDeleted {})), ..Event::default() }
}
