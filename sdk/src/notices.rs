//! What a plugin tells its host unasked: how far calls have come, and that it offers something else now.
//!
//! A tool must never wait for whoever listens, so there is no queue of notices but a board of what is new: one place for
//! each call, which its next progress overwrites, and one for changed capabilities. A listener takes from it as fast as it can.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talon_proto::notices::notice::Kind;
use talon_proto::notices::{CapabilitiesChanged, Notice, Progress};
use tokio::sync::Notify;

use crate::text::cut;

/// Of how many calls the latest progress waits to be taken; beyond that the oldest is dropped. More than any host lets a plugin
/// serve at once by default; only a plugin of more than this many calls in flight would want a higher one.
const MAX_CALLS: usize = 256;
/// How much of a progress's message is sent, in bytes; what hosts keep of it (`talon.plugin.v1`).
const MAX_MESSAGE_BYTES: usize = 1024;

/// Tells the host that the plugin offers something else than before. Cheap to clone; clones tell the same host. Give it to
/// [`Plugin::notifier`](crate::Plugin::notifier), and keep a clone where changes are noticed.
///
/// ```
/// # use talon_sdk::{Notifier, Plugin};
/// let notifier = Notifier::new();
/// let plugin = Plugin::new("mirror")
///     .refresh(|| async { Ok(Vec::new()) /* what is offered now */ })
///     .notifier(notifier.clone());
/// // Later, wherever the change is noticed:
/// notifier.capabilities_changed();
/// ```
#[derive(Clone, Default)]
pub struct Notifier {
    pub(crate) board: Arc<Board>,
}

impl Notifier {
    /// One that tells nobody until a plugin that has it is served.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that the host should ask for the capabilities anew; it does so by `RefreshCapabilities`, which
    /// [`Plugin::refresh`](crate::Plugin::refresh) answers. Never waits. Said often before the host took it, it counts once; said
    /// before the host listens, it is told when it does.
    pub fn capabilities_changed(&self) {
        self.board.state().changed = true;
        self.board.news.notify_one();
    }
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").finish_non_exhaustive()
    }
}

/// What is new and not taken yet.
#[derive(Default)]
pub(crate) struct Board {
    /// Whether anybody listens. Read before anything else, so that a tool pays nothing for progress that nobody wants.
    heard: AtomicBool,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    /// Counts the listeners; the latest one gets what is new, and the earlier ones end.
    turn: u64,
    changed: bool,
    /// In the order in which calls first had something to tell, each call once.
    progress: VecDeque<Progress>,
}

impl Board {
    /// Puts down how far a call has come, in the place of what it said before. Dropped when nobody listens, and when it is no
    /// amount.
    pub(crate) fn progress(&self, call_id: &str, progress: f64, total: Option<f64>, message: &str) {
        if self.heard.load(Ordering::Relaxed)
            && let Some(progress) = made(call_id, progress, total, message)
        {
            self.put(progress);
        }
    }

    fn put(&self, progress: Progress) {
        let mut state = self.state();
        match state.progress.iter_mut().find(|earlier| earlier.call_id == progress.call_id) {
            Some(earlier) => *earlier = progress,
            None => {
                if state.progress.len() >= MAX_CALLS {
                    state.progress.pop_front();
                }
                state.progress.push_back(progress);
            }
        }
        drop(state);
        self.news.notify_one();
    }

    /// From here on there is a listener; whoever listened before is told to end.
    pub(crate) fn listen(self: &Arc<Self>) -> Listener {
        let mut state = self.state();
        state.turn += 1;
        let turn = state.turn;
        self.heard.store(true, Ordering::Relaxed);
        drop(state);
        self.news.notify_waiters();
        Listener { board: self.clone(), turn }
    }

    /// Nothing can panic while it is held, so a poisoned one is as good.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what is new, until another one listens.
pub(crate) struct Listener {
    board: Arc<Board>,
    turn: u64,
}

impl Listener {
    /// The next notice; `None` once another listener has taken over.
    pub(crate) async fn next(&self) -> Option<Notice> {
        loop {
            let notified = self.board.news.notified();
            tokio::pin!(notified);
            // Listening begins before looking, so that what comes in between is not missed.
            notified.as_mut().enable();
            {
                let mut state = self.board.state();
                if state.turn != self.turn {
                    // The word may have been meant for the one that listens now.
                    self.board.news.notify_one();
                    return None;
                }
                if std::mem::take(&mut state.changed) {
                    return Some(Notice { kind: Some(Kind::CapabilitiesChanged(CapabilitiesChanged {})) });
                }
                if let Some(progress) = state.progress.pop_front() {
                    return Some(Notice { kind: Some(Kind::Progress(progress)) });
                }
            }
            notified.await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.board.state();
        if state.turn == self.turn {
            self.board.heard.store(false, Ordering::Relaxed);
            state.progress.clear();
        }
    }
}

/// The message, if it tells anything: amounts are finite and not negative.
pub(crate) fn made(call_id: &str, progress: f64, total: Option<f64>, message: &str) -> Option<Progress> {
    let amount = |value: f64| value.is_finite() && value >= 0.0;
    amount(progress).then(|| Progress {
        call_id: call_id.to_owned(),
        progress,
        total: total.filter(|total| amount(*total)),
        message: cut(message.lines().next().unwrap_or_default(), MAX_MESSAGE_BYTES).to_owned(),
    })
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;
