//! The state of a service that outlives its processes.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use talon_plugin::{EventKind, Events, Link, NewEvent};
use talon_sanitize::{Sanitized, inert};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::kind::Kind;
use super::session;
use super::status::{KeeperState, KeeperStatus};

/// A handle to a service. Clones share state.
pub(crate) struct Held<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    kind: K,
    events: Events,
    /// Wakes the session when the desired state has changed.
    changed: Notify,
    status: watch::Sender<KeeperStatus>,
    /// Ends the session, and the service with its control socket. Replaced once the service may run again.
    closing: Mutex<CancellationToken>,
    /// Ends the session with the current process. The process may have passed its end of the socket on; then
    /// the session would not end when the process does, and another process would receive what is meant for
    /// the next one.
    session: Mutex<CancellationToken>,
}

impl<K> Clone for Held<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K: Kind> Held<K> {
    /// A handle without a process. It gets one when it is registered as a service's link.
    pub(crate) fn new(kind: K, events: Events) -> Self {
        let inner = Inner {
            kind,
            events,
            changed: Notify::new(),
            status: watch::Sender::new(KeeperStatus::default()),
            closing: Mutex::default(),
            session: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn kind(&self) -> &K {
        &self.inner.kind
    }

    /// The status of the service.
    pub(crate) fn status(&self) -> KeeperStatus {
        self.inner.status.borrow().clone()
    }

    /// The status, with changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<KeeperStatus> {
        self.inner.status.subscribe()
    }

    /// Makes the session reconcile the service with the desired state.
    pub(crate) fn changed(&self) {
        self.inner.changed.notify_one();
    }

    pub(super) async fn change(&self) {
        self.inner.changed.notified().await;
    }

    /// Cancelled when the current service is to end.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.inner.closing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets a service run again after a stop. The desired state is kept, and the next process gets it.
    pub(crate) fn reopen(&self) {
        *self.inner.closing.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
        self.note(|status| *status = KeeperStatus::default());
    }

    /// Updates the status, and emits an event if the state changes.
    pub(crate) fn note(&self, change: impl FnOnce(&mut KeeperStatus)) {
        let mut changed = None;
        self.inner.status.send_modify(|status| {
            let before = status.state;
            change(status);
            if before != status.state {
                changed = Some((status.state, status.problem.clone()));
            }
        });
        if let Some((state, problem)) = changed {
            let event = NewEvent::new(EventKind::Supervisor, K::CALLED).field("state", state.as_str());
            self.inner.events.emit(match problem {
                Some(problem) => event.field("problem", problem),
                None => event,
            });
        }
    }

    /// Ends the current session and starts another.
    fn next_session(&self) -> CancellationToken {
        let next = self.closing().child_token();
        let mut session = self.inner.session.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *session, next.clone()).cancel();
        next
    }
}

impl<K> fmt::Debug for Held<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("status", &*self.inner.status.borrow()).finish_non_exhaustive()
    }
}

impl<K: Kind> Link for Held<K> {
    fn started(&self, control: OwnedFd, pid: u32, uid: u32) {
        self.note(|status| {
            (status.pid, status.uid) = (pid, uid);
            status.state = KeeperState::Starting;
        });
        let ends = self.next_session();
        tokio::spawn(session::run(self.clone(), control, ends));
    }

    fn stopping(&self) {
        self.closing().cancel();
    }

    fn ended(&self, how: &Sanitized, again_in: Option<Duration>) {
        self.next_session();
        self.kind().ended();
        self.note(|status| {
            status.pid = 0;
            status.restarts += u64::from(again_in.is_some());
            status.state = KeeperState::Backoff;
            // A problem that the service reported before it ended is more specific.
            if status.refused.is_none() {
                status.problem = Some(inert!("it ended: {}", how));
            }
        });
        match again_in {
            Some(wait) => {
                tracing::error!(%how, again_in = ?wait, "the {} ended; it will be started again", K::CALLED)
            }
            None => tracing::debug!(%how, "the {} ended", K::CALLED),
        }
    }
}
