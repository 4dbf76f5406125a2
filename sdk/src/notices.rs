//! Notices that a plugin sends without a request: the progress and output of calls, which scripts it runs, and that its capabilities,
//! lists or resources changed.
//!
//! A tool must never wait for the host to take a notice, so there is no queue. Instead there is one slot for
//! each call, which the next progress report overwrites, one for each changed resource, one for each script, and one for changed
//! capabilities. A listener takes from the slots as fast as it can.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use talon_proto::notices::notice::Kind;
use talon_proto::notices::{CapabilitiesChanged, ListsChanged, Notice, Progress, ResourcesUpdated};
use tokio::sync::Notify;

use crate::output_queue::OutputQueue;
use crate::script_board::ScriptBoard;
use crate::script_status::ScriptStatus;
use crate::text::cut;

/// How many calls may have a pending progress report; beyond that the oldest report is dropped. By default no
/// host lets a plugin serve this many calls at once.
const MAX_CALLS: usize = 256;
/// How much of a progress message is sent, in bytes; hosts keep no more (`talon.plugin.v1`).
const MAX_MESSAGE_BYTES: usize = 1024;
/// How many changed resources may wait for the host; beyond that the oldest is dropped. As many as hosts keep.
const MAX_UPDATED: usize = 256;
/// The longest address of a changed resource in bytes, and of all in one notice: hosts drop longer ones, and a notice has
/// 16 KiB at most (`talon.plugin.v1`).
const MAX_URI_BYTES: usize = 2048;
const MAX_URIS_BYTES: usize = 8 << 10;

/// Notifies the host that the plugin's capabilities changed. Cheap to clone; clones notify the same host.
/// Give it to [`Plugin::notifier`](crate::Plugin::notifier), and keep a clone where changes are noticed.
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
    pub(crate) board: Arc<PendingNotices>,
}

impl Notifier {
    /// A notifier that does nothing until a plugin that has it is served.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the host to read the capabilities again. The host does so by `RefreshCapabilities`, which
    /// [`Plugin::refresh`](crate::Plugin::refresh) answers. Never waits. Several calls before the host takes
    /// the notice count as one; a call before the host listens is delivered when it does.
    pub fn capabilities_changed(&self) {
        self.board.state.lock().changed = true;
        self.board.wakeup.notify_one();
    }
}

impl Notifier {
    /// Tells the host that the plugin lists other resources or prompts (the actions of `talon_proto::mcp_actions`), which
    /// clients of `talon mcp` are notified of. Never waits. Several calls before the host takes the notice count as one.
    pub fn lists_changed(&self, resources: bool, prompts: bool) {
        let mut state = self.board.state.lock();
        state.lists.resources |= resources;
        state.lists.prompts |= prompts;
        drop(state);
        self.board.wakeup.notify_one();
    }

    /// Tells the host that a resource has other contents than before, which clients of `talon mcp` that follow it (the action
    /// `_-resources_subscribe`) are notified of. Never waits. Several calls for one resource before the host takes the notice
    /// count as one; of more than 256 resources the oldest are dropped, and so is an address of more than 2 KiB.
    pub fn resource_updated(&self, uri: &str) {
        if uri.is_empty() || uri.len() > MAX_URI_BYTES {
            return;
        }
        let mut state = self.board.state.lock();
        if !state.updated.iter().any(|known| known == uri) {
            if state.updated.len() >= MAX_UPDATED {
                state.updated.pop_front();
            }
            state.updated.push_back(uri.to_owned());
        }
        drop(state);
        self.board.wakeup.notify_one();
    }
}

impl Notifier {
    /// Tells the host what runs of a script, for plugins that run scripts: hosts show it, make an event of a version that is loaded
    /// or refused, and record its SHA-256. Never waits. The latest status of a script counts, and a host that begins to listen gets
    /// those of all. Of more than 256 scripts the further ones are dropped, and so is a name that is not 1 to 64 of `A-Z`, `a-z`,
    /// `0-9`, `_`, `-` and the point.
    pub fn script(&self, status: ScriptStatus) {
        self.board.state.lock().scripts.put(status.into());
        self.board.wakeup.notify_one();
    }

    /// Tells the host that a script is gone, and nothing of it runs any more. Never waits.
    pub fn script_removed(&self, name: &str) {
        self.board.state.lock().scripts.remove(name);
        self.board.wakeup.notify_one();
    }
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").finish_non_exhaustive()
    }
}

/// Notices that the host has not taken yet.
#[derive(Default)]
pub(crate) struct PendingNotices {
    /// Whether a host listens. Checked first, so that progress costs a tool nothing when no host listens.
    has_listener: AtomicBool,
    state: Mutex<State>,
    wakeup: Notify,
}

#[derive(Default)]
struct State {
    /// Counts the listeners: the latest one gets the notices, and the earlier ones end.
    turn: u64,
    changed: bool,
    lists: ListsChanged,
    /// Addresses of changed resources, the oldest first, each once.
    updated: VecDeque<String>,
    /// In the order of each call's first pending report, each call once.
    progress: VecDeque<Progress>,
    output: OutputQueue,
    scripts: ScriptBoard,
    /// What came last of calls.
    was_output: bool,
}

impl State {
    /// Progress and output take turns, so that neither holds up the other.
    fn next_of_calls(&mut self) -> Option<Notice> {
        self.was_output = !self.was_output;
        let progress = |state: &mut Self| state.progress.pop_front().map(Kind::Progress);
        let output = |state: &mut Self| state.output.pop().map(Kind::Output);
        let kind = if self.was_output {
            output(self).or_else(|| progress(self))
        } else {
            progress(self).or_else(|| output(self))
        };
        kind.map(|kind| Notice { kind: Some(kind) })
    }
}

impl PendingNotices {
    /// Stores the progress of a call and replaces the previous report. Dropped when no host listens, and when
    /// the amount is invalid.
    pub(crate) fn progress(&self, call_id: &str, progress: f64, total: Option<f64>, message: &str) {
        if self.has_listener.load(Ordering::Relaxed)
            && let Some(progress) = progress_message(call_id, progress, total, message)
        {
            self.put(progress);
        }
    }

    /// Adds lines to what a call puts out. Dropped when no host listens.
    pub(crate) fn output(&self, call_id: &str, text: &str) {
        if self.has_listener.load(Ordering::Relaxed) {
            self.state.lock().output.push(call_id, text);
            self.wakeup.notify_one();
        }
    }

    fn put(&self, progress: Progress) {
        let mut state = self.state.lock();
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
        self.wakeup.notify_one();
    }

    /// Registers a listener. The previous listener ends.
    pub(crate) fn listen(self: &Arc<Self>) -> Listener {
        let mut state = self.state.lock();
        state.turn += 1;
        let turn = state.turn;
        state.scripts.tell_all();
        self.has_listener.store(true, Ordering::Relaxed);
        drop(state);
        self.wakeup.notify_waiters();
        Listener { board: self.clone(), turn }
    }
}

/// Takes notices until another listener replaces it.
pub(crate) struct Listener {
    board: Arc<PendingNotices>,
    turn: u64,
}

impl Listener {
    /// The next notice; `None` once another listener has replaced this one.
    pub(crate) async fn next(&self) -> Option<Notice> {
        loop {
            let notified = self.board.wakeup.notified();
            tokio::pin!(notified);
            // Waiting is enabled before the check, so that a notice in between is not missed.
            notified.as_mut().enable();
            {
                let mut state = self.board.state.lock();
                if state.turn != self.turn {
                    // The wakeup may have been meant for the current listener.
                    self.board.wakeup.notify_one();
                    return None;
                }
                if std::mem::take(&mut state.changed) {
                    return Some(Notice { kind: Some(Kind::CapabilitiesChanged(CapabilitiesChanged {})) });
                }
                if state.lists.resources || state.lists.prompts {
                    let lists = std::mem::take(&mut state.lists);
                    return Some(Notice { kind: Some(Kind::ListsChanged(lists)) });
                }
                if let Some(updated) = take_updated(&mut state.updated) {
                    return Some(Notice { kind: Some(Kind::ResourcesUpdated(updated)) });
                }
                if let Some(script) = state.scripts.take() {
                    return Some(Notice { kind: Some(Kind::Script(script)) });
                }
                if let Some(notice) = state.next_of_calls() {
                    return Some(notice);
                }
            }
            notified.await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.board.state.lock();
        if state.turn == self.turn {
            self.board.has_listener.store(false, Ordering::Relaxed);
            state.progress.clear();
            state.output = OutputQueue::default();
        }
    }
}

/// As many changed resources as fit into one notice; `None` without any.
fn take_updated(updated: &mut VecDeque<String>) -> Option<ResourcesUpdated> {
    let (mut uris, mut bytes) = (Vec::new(), 0);
    while let Some(uri) = updated.pop_front_if(|uri| bytes + uri.len() <= MAX_URIS_BYTES) {
        bytes += uri.len();
        uris.push(uri);
    }
    (!uris.is_empty()).then_some(ResourcesUpdated { uris })
}

/// The progress message; `None` unless the amounts are finite and not negative.
pub(crate) fn progress_message(
    call_id: &str,
    progress: f64,
    total: Option<f64>,
    message: &str,
) -> Option<Progress> {
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
