//! The state of a service that outlives its processes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_plugin::{EventKind, Events, NewEvent};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::status::ManagedServiceStatus;

/// How long a process that is asked to end may tell what its clients still change. 10 s: the agent ends within 5 s.
pub(super) const LAST_WAIT: Duration = Duration::from_secs(10);

/// A handle to a service. Clones share state.
pub(crate) struct ServiceHandle<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    name: &'static str,
    service: K,
    events: Events,
    /// Wakes the session when the desired state has changed.
    changed: Notify,
    status: watch::Sender<ManagedServiceStatus>,
    /// Ends the session, and the service with its control socket. Replaced once the service may run again.
    closing: Mutex<CancellationToken>,
    /// Ends the session with the current process. The process may have passed its end of the socket on; then
    /// the session would not end when the process does, and another process would receive what is meant for
    /// the next one.
    session: Mutex<CancellationToken>,
    /// The sessions that still receive what a process said.
    receiving: TaskTracker,
}

impl<K> Clone for ServiceHandle<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K> ServiceHandle<K> {
    /// A handle without a process. It gets one when it is registered as a service's link. `name` is the
    /// service's in events.
    pub(crate) fn new(name: &'static str, service: K, events: Events) -> Self {
        let inner = Inner {
            name,
            service,
            events,
            changed: Notify::new(),
            status: watch::Sender::new(ManagedServiceStatus::default()),
            closing: Mutex::default(),
            session: Mutex::default(),
            receiving: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn service(&self) -> &K {
        &self.inner.service
    }

    /// The status of the service.
    pub(crate) fn status(&self) -> ManagedServiceStatus {
        self.inner.status.borrow().clone()
    }

    /// The status, with changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<ManagedServiceStatus> {
        self.inner.status.subscribe()
    }

    /// Makes the session reconcile the service with the desired state.
    pub(crate) fn notify_changed(&self) {
        self.inner.changed.notify_one();
    }

    pub(super) async fn wait_changed(&self) {
        self.inner.changed.notified().await;
    }

    /// Cancelled when the current service is to end.
    pub(crate) fn closing_token(&self) -> CancellationToken {
        self.inner.closing.lock().clone()
    }

    /// Lets a service run again after a stop. The desired state is kept, and the next process gets it.
    pub(crate) fn reopen(&self) {
        *self.inner.closing.lock() = CancellationToken::new();
        self.update_status(|status| *status = ManagedServiceStatus::default());
    }

    /// Updates the status, and emits an event if the state changes.
    pub(crate) fn update_status(&self, change: impl FnOnce(&mut ManagedServiceStatus)) {
        let mut changed = None;
        self.inner.status.send_modify(|status| {
            let before = status.state;
            change(status);
            if before != status.state {
                changed = Some((status.state, status.problem.clone()));
            }
        });
        if let Some((state, problem)) = changed {
            let event = NewEvent::new(EventKind::Supervisor, self.inner.name)
                .field("service", self.inner.name)
                .field("state", state.as_str());
            let event = match self.closing_token().is_cancelled() {
                true => event.field("planned", true),
                false => event,
            };
            self.inner.events.emit(match problem {
                Some(problem) => event.field("problem", problem),
                None => event,
            });
        }
    }

    /// Where sessions run.
    pub(super) fn receiving(&self) -> &TaskTracker {
        &self.inner.receiving
    }

    /// Waits until all is received that a process said which was stopped, as long as that may take: [`LAST_WAIT`].
    pub(crate) async fn wait_received(&self) {
        self.inner.receiving.close();
        // What is said later does not count.
        let _stayed = timeout(LAST_WAIT, self.inner.receiving.wait()).await;
    }

    /// Ends the current session and starts another.
    pub(super) fn start_session(&self) -> CancellationToken {
        let next = self.closing_token().child_token();
        let mut session = self.inner.session.lock();
        std::mem::replace(&mut *session, next.clone()).cancel();
        next
    }
}

impl<K> fmt::Debug for ServiceHandle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("status", &*self.inner.status.borrow()).finish_non_exhaustive()
    }
}
