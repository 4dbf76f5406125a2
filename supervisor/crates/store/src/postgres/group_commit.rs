//! Group commit: which writes of one plugin share a commit.
//!
//! A plugin's usage is stored in one row, so its writes take turns there, each holding the row lock until its
//! commit is on the server's disk. Sixty-four of them would wait for sixty-four fsyncs, on as many
//! connections. So the first of them becomes the leader: it takes a connection, and writes that arrive
//! meanwhile wait and share the next transaction, each in a separate savepoint. So a plugin uses one
//! connection at a time, however busy it is.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::timeouts::MAX_WAIT;
use crate::change::{Change, ChangeResult};
use crate::error::Error;
use crate::id::PluginId;

/// How many writes share a commit at most, so that the first of them does not wait too long for its answer.
const MAX_SHARED: usize = 64;
/// How many writes of one plugin wait at most; values have up to a megabyte. Further callers get
/// [`Error::Busy`].
const MAX_WAITING: usize = 256;

/// The plugins with a leader, and the changes that wait for it.
#[derive(Default)]
pub(super) struct GroupCommit(Mutex<HashMap<PluginId, Vec<PendingChange>>>);

pub(super) struct PendingChange {
    pub(super) change: Change,
    pub(super) reply: oneshot::Sender<Result<ChangeResult, Error>>,
}

impl GroupCommit {
    /// Queues a change; returns whether there is no leader.
    pub(super) fn enqueue(&self, waiting: PendingChange) -> Result<bool, Error> {
        match self.0.lock().entry(waiting.change.namespace.plugin.clone()) {
            Entry::Occupied(others) if others.get().len() >= MAX_WAITING => Err(Error::Busy(MAX_WAIT)),
            Entry::Occupied(mut others) => {
                others.get_mut().push(waiting);
                Ok(false)
            }
            Entry::Vacant(leaderless) => {
                leaderless.insert(vec![waiting]);
                Ok(true)
            }
        }
    }

    /// The next batch of changes; if there is none, the leader stops.
    pub(super) fn next_batch(&self, plugin: &PluginId) -> Vec<PendingChange> {
        let mut plugins = self.0.lock();
        let Some(waiting) = plugins.get_mut(plugin).filter(|waiting| !waiting.is_empty()) else {
            plugins.remove(plugin);
            return Vec::new();
        };
        let size = waiting.len().min(MAX_SHARED);
        waiting.drain(..size).collect()
    }
}

/// Removes the leader even if its task is dropped: waiting callers then get an error that the store is
/// closed.
pub(super) struct LeaderGuard<'a>(pub(super) &'a GroupCommit, pub(super) &'a PluginId);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(self.1);
    }
}
