//! Who follows what, and in which sessions there is something new.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use talon_store::SessionId;
use tokio::sync::Notify;

use super::live_turn::LiveTurn;

/// Whose sessions a follower sees beside those that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Audience {
    /// None.
    Named,
    /// Those of a sender.
    Sender(Arc<str>),
    /// Everybody's.
    Everybody,
}

/// In which sessions there is something new, and what is not durable. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionFeed(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    index: Mutex<Index>,
    followers: AtomicUsize,
    next: AtomicU64,
    live: Mutex<HashMap<SessionId, Arc<LiveTurn>>>,
}

/// The followers, by what they follow.
#[derive(Debug, Default)]
struct Index {
    by_session: HashMap<SessionId, Vec<Arc<Mailbox>>>,
    by_sender: HashMap<Arc<str>, Vec<Arc<Mailbox>>>,
    everybody: Vec<Arc<Mailbox>>,
}

/// What a follower has still to look at: each session once, however much is new in it.
#[derive(Debug)]
pub(super) struct Mailbox {
    number: u64,
    news: Mutex<BTreeMap<SessionId, SessionChanges>>,
    filled: Notify,
}

/// What is new in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SessionChanges {
    /// The first new message in the store, if there is one.
    pub(super) first: Option<u64>,
    /// It was deleted.
    pub(super) deleted: bool,
}

impl SessionFeed {
    /// Whether anybody follows anything.
    pub(super) fn is_followed(&self) -> bool {
        self.0.followers.load(Ordering::Relaxed) > 0
    }

    /// Whether somebody follows by sender, or everybody's but sub-agents', so that a session's sender has to be known.
    pub(super) fn needs_senders(&self) -> bool {
        if !self.is_followed() {
            return false;
        }
        let index = self.0.index.lock();
        !(index.by_sender.is_empty() && index.everybody.is_empty())
    }

    /// Adds a follower of these sessions and of an audience. It has no news at first.
    pub(super) fn follow(&self, named: &[SessionId], audience: Audience) -> FeedSubscription {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let mailbox = Arc::new(Mailbox { number, news: Mutex::default(), filled: Notify::new() });
        let mut index = self.0.index.lock();
        for id in named {
            index.by_session.entry(*id).or_default().push(Arc::clone(&mailbox));
        }
        match &audience {
            Audience::Named => {}
            Audience::Sender(sender) => {
                index.by_sender.entry(Arc::clone(sender)).or_default().push(Arc::clone(&mailbox));
            }
            Audience::Everybody => index.everybody.push(Arc::clone(&mailbox)),
        }
        drop(index);
        self.0.followers.fetch_add(1, Ordering::Relaxed);
        FeedSubscription { feed: self.clone(), mailbox, named: named.to_vec(), audience }
    }

    /// Says that there is something new in a session of a sender.
    pub(super) fn tell(&self, id: SessionId, sender: Option<&str>, news: SessionChanges) {
        if !self.is_followed() {
            return;
        }
        let index = self.0.index.lock();
        let of_session = index.by_session.get(&id).into_iter().flatten();
        let of_sender = sender.and_then(|sender| index.by_sender.get(sender)).into_iter().flatten();
        of_session.chain(of_sender).chain(&index.everybody).for_each(|mailbox| mailbox.put(id, news));
    }

    /// Begins to keep what is not durable of a session's turn.
    pub(super) fn begin_turn(&self, id: SessionId, turn: Arc<LiveTurn>) {
        self.0.live.lock().insert(id, turn);
    }

    /// Ends that, unless another turn has begun.
    pub(super) fn end_turn(&self, id: SessionId, turn: &Arc<LiveTurn>) {
        let mut live = self.0.live.lock();
        if live.get(&id).is_some_and(|now| Arc::ptr_eq(now, turn)) {
            live.remove(&id);
        }
    }

    /// The turn that a session is in.
    pub(super) fn live_turn(&self, id: SessionId) -> Option<Arc<LiveTurn>> {
        self.0.live.lock().get(&id).cloned()
    }
}

impl Mailbox {
    fn put(&self, id: SessionId, news: SessionChanges) {
        let mut all = self.news.lock();
        let kept = all.entry(id).or_default();
        kept.first = match (kept.first, news.first) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
        kept.deleted |= news.deleted;
        drop(all);
        self.filled.notify_one();
    }
}

/// A follower's place in the feed. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct FeedSubscription {
    feed: SessionFeed,
    mailbox: Arc<Mailbox>,
    named: Vec<SessionId>,
    audience: Audience,
}

impl FeedSubscription {
    /// Takes all news; none if there is none.
    pub(super) fn take(&self) -> BTreeMap<SessionId, SessionChanges> {
        std::mem::take(&mut *self.mailbox.news.lock())
    }

    /// Returns when there is news, or at once if there was since this returned last.
    pub(super) async fn filled(&self) {
        self.mailbox.filled.notified().await;
    }
}

impl Drop for FeedSubscription {
    fn drop(&mut self) {
        let mut index = self.feed.0.index.lock();
        let leave = |all: &mut Vec<Arc<Mailbox>>| {
            all.retain(|one| one.number != self.mailbox.number);
            all.is_empty()
        };
        for id in &self.named {
            if index.by_session.get_mut(id).is_some_and(leave) {
                index.by_session.remove(id);
            }
        }
        if let Audience::Sender(sender) = &self.audience
            && index.by_sender.get_mut(sender).is_some_and(leave)
        {
            index.by_sender.remove(sender);
        }
        leave(&mut index.everybody);
        drop(index);
        self.feed.0.followers.fetch_sub(1, Ordering::Relaxed);
    }
}
