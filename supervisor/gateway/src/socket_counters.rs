//! How many connections there are, and what became of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talon_listen::{PlaceLimitError, PlaceLimiter, PlaceLimits, PlacePermit};

use crate::identity::Caller;
use crate::settings::Limits;

/// Counts WebSocket connections.
#[derive(Debug, Default)]
pub(crate) struct SocketCounters {
    /// By the subject whose they are: several tokens of one subject are one caller.
    open: Arc<PlaceLimiter<Arc<str>>>,
    messages: AtomicU64,
    cut: AtomicU64,
}

/// The place of an open connection, until it is dropped.
pub(crate) type SocketPlace = PlacePermit<Arc<str>>;

/// There are as many connections as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SocketLimitError {
    /// Of everybody.
    #[error("there are {0} WebSocket connections (gateway.limits.websockets): close some, or connect later")]
    All(usize),
    /// Of this caller.
    #[error(
        "{0} WebSocket connections of one caller are the most (gateway.limits.websockets_per_caller): close one of them"
    )]
    Caller(usize),
}

impl SocketCounters {
    /// A place for a connection of this caller. Fewer places than before close nothing.
    ///
    /// # Errors
    /// [`SocketLimitError`]
    pub(crate) fn enter(&self, caller: &Caller, limits: &Limits) -> Result<SocketPlace, SocketLimitError> {
        let limits = PlaceLimits { all: limits.websockets, of_one: limits.websockets_per_caller };
        let place = self.open.take(Arc::<str>::from(caller.subject.as_str()), limits);
        place.map_err(|limit| match limit {
            PlaceLimitError::All(most) => SocketLimitError::All(most),
            PlaceLimitError::OfOne(most) => SocketLimitError::Caller(most),
        })
    }

    pub(crate) fn count_message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> u64 {
        self.open.taken() as u64
    }

    /// Messages of clients.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Connections that were cut off because their clients read too slowly.
    pub(crate) fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Scope, Subject, Via};
    use crate::testing::TEST_LIMITS;

    fn caller(person: &str, token: &str) -> Caller {
        Caller {
            subject: Subject::of("web", person).unwrap(),
            scopes: [Scope::Chat].into_iter().collect(),
            channel: "gateway".into(),
            session: None,
            via: Via::Token(token.into()),
        }
    }

    // Promises: GW-139
    #[test]
    fn one_caller_cannot_take_all_places() {
        let counters = SocketCounters::default();
        let limits = Limits { websockets: 5, websockets_per_caller: 3, ..TEST_LIMITS };
        let enter = |person, token| counters.enter(&caller(person, token), &limits);
        let mut held: Vec<_> = std::iter::from_fn(|| enter("ada", "1").ok()).collect();
        // Another token of hers is hers as well.
        assert_eq!((held.len(), enter("ada", "2").unwrap_err()), (3, SocketLimitError::Caller(3)));
        held.extend(std::iter::from_fn(|| enter("bob", "3").ok()));
        assert_eq!((counters.open(), enter("eve", "4").unwrap_err()), (5, SocketLimitError::All(5)));
        drop(held);
        assert_eq!(counters.open(), 0);
    }
}
