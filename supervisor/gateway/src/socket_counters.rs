//! How many connections there are, and what became of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::identity::Caller;
use crate::settings::Limits;

/// Counts WebSocket connections.
#[derive(Debug, Default)]
pub(crate) struct SocketCounters {
    open: Mutex<OpenSockets>,
    messages: AtomicU64,
    cut: AtomicU64,
}

/// Connections that are open, by the subject whose they are: several tokens of one subject are one caller.
#[derive(Debug, Default)]
struct OpenSockets {
    all: usize,
    by_caller: HashMap<Arc<str>, usize>,
}

/// The place of an open connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct SocketPlace {
    counters: Arc<SocketCounters>,
    caller: Arc<str>,
}

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
    pub(crate) fn enter(
        counters: &Arc<Self>,
        caller: &Caller,
        limits: &Limits,
    ) -> Result<SocketPlace, SocketLimitError> {
        let key = caller.subject.as_str();
        let mut open = counters.open.lock();
        if open.all >= limits.websockets {
            return Err(SocketLimitError::All(limits.websockets));
        }
        let own = open.by_caller.get(key).copied().unwrap_or(0);
        if own >= limits.websockets_per_caller {
            return Err(SocketLimitError::Caller(limits.websockets_per_caller));
        }
        let caller: Arc<str> = key.into();
        open.by_caller.insert(Arc::clone(&caller), own + 1);
        open.all += 1;
        Ok(SocketPlace { counters: Arc::clone(counters), caller })
    }

    pub(crate) fn count_message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> u64 {
        self.open.lock().all as u64
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

impl Drop for SocketPlace {
    fn drop(&mut self) {
        let mut open = self.counters.open.lock();
        open.all -= 1;
        if let Some(own) = open.by_caller.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                open.by_caller.remove(&self.caller);
            }
        }
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
        let counters = Arc::<SocketCounters>::default();
        let limits = Limits { websockets: 5, websockets_per_caller: 3, ..TEST_LIMITS };
        let enter = |person, token| SocketCounters::enter(&counters, &caller(person, token), &limits);
        let mut held: Vec<_> = std::iter::from_fn(|| enter("ada", "1").ok()).collect();
        // Another token of hers is hers as well.
        assert_eq!((held.len(), enter("ada", "2").unwrap_err()), (3, SocketLimitError::Caller(3)));
        held.extend(std::iter::from_fn(|| enter("bob", "3").ok()));
        assert_eq!((counters.open(), enter("eve", "4").unwrap_err()), (5, SocketLimitError::All(5)));
        drop(held);
        assert_eq!(counters.open(), 0);
        assert!(counters.open.lock().by_caller.is_empty(), "a free place is forgotten");
    }
}
