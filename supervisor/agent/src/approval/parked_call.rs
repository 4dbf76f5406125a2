//! A parked call in memory, and the requests that wait for it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use talon_proto::agent;
use tokio::sync::watch;
use tokio::time::Instant;

use super::record::{ApprovalRecord, ApprovalState};

/// A stored record, with its state in this process.
pub(super) struct ParkedCall {
    pub(super) record: ApprovalRecord,
    /// By the monotonic clock. The wall clock counts only across a restart.
    pub(super) deadline: Instant,
    pub(super) state: watch::Sender<ApprovalState>,
    /// Alive while a request waits for it.
    waiting: Weak<()>,
    /// A caller received the outcome in this process. From then on, the same call is a new one.
    pub(super) delivered: bool,
}

impl ParkedCall {
    pub(super) fn new(record: ApprovalRecord, left: Duration) -> Self {
        Self {
            deadline: Instant::now() + left,
            state: watch::Sender::new(record.state),
            waiting: Weak::new(),
            delivered: false,
            record,
        }
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.strong_count() > 0
    }

    /// Whether the call can still be made.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.record.state, ApprovalState::Pending | ApprovalState::Approved)
    }

    /// Registers a waiter.
    pub(super) fn wait(&mut self) -> WaiterGuard {
        let token = Arc::new(());
        self.waiting = Arc::downgrade(&token);
        WaiterGuard {
            id: self.record.id.clone(),
            deadline: self.deadline,
            state: self.state.subscribe(),
            shown: Box::new(self.record.to_wire()),
            _token: token,
        }
    }
}

/// A registered waiter; dropping it unregisters.
pub(super) struct WaiterGuard {
    pub(super) id: String,
    pub(super) deadline: Instant,
    pub(super) state: watch::Receiver<ApprovalState>,
    pub(super) shown: Box<agent::Approval>,
    _token: Arc<()>,
}

impl WaiterGuard {
    /// Waits for an answer or the end of the time; the queue says which it was. The sender lives as long as the
    /// queue.
    pub(super) async fn wait(&mut self) -> ApprovalState {
        let decided = self.state.wait_for(|state| *state != ApprovalState::Pending);
        let _ = tokio::time::timeout_at(self.deadline, decided).await;
        *self.state.borrow()
    }
}

pub(super) enum ParkOutcome {
    /// It is not parked, and why, for the model.
    Refused(String),
    Wait(WaiterGuard),
}
