//! A parked call in memory, and who waits in front of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use talon_proto::agent;
use tokio::sync::watch;
use tokio::time::Instant;

use super::record::{Record, State};
use crate::driver::Confirmed;

/// A record, and who has to do with it in this process.
pub(super) struct Parked {
    pub(super) record: Record,
    /// By the clock that nobody sets; only across a restart the wall clock is reckoned with.
    pub(super) deadline: Instant,
    pub(super) state: watch::Sender<State>,
    /// Alive while somebody waits for it.
    waiting: Weak<()>,
    /// What came of it was told to somebody who asked, in this process: the same call is a new one from then on.
    pub(super) told: bool,
}

impl Parked {
    pub(super) fn new(record: Record, left: Duration) -> Self {
        Self {
            deadline: Instant::now() + left,
            state: watch::Sender::new(record.state),
            waiting: Weak::new(),
            told: false,
            record,
        }
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.strong_count() > 0
    }

    /// Whether something may still come of it.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.record.state, State::Pending | State::Approved)
    }

    /// Takes a place in front of it.
    pub(super) fn wait(&mut self) -> Place {
        let token = Arc::new(());
        self.waiting = Arc::downgrade(&token);
        Place {
            id: self.record.id.clone(),
            deadline: self.deadline,
            state: self.state.subscribe(),
            shown: Box::new(self.record.shown()),
            _token: token,
        }
    }
}

/// Somebody waits for a call; dropping it is going away.
pub(super) struct Place {
    pub(super) id: String,
    pub(super) deadline: Instant,
    pub(super) state: watch::Receiver<State>,
    pub(super) shown: Box<agent::Approval>,
    _token: Arc<()>,
}

pub(super) enum Found {
    Answer(Confirmed),
    Wait(Place),
}
