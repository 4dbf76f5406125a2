//! Group commit: how the writes of one plugin share commits.
//!
//! A plugin's usage is stored in one row, so its writes take turns there, each holding the row lock until its commit is
//! on the server's disk. Sixty-four of them would wait for sixty-four fsyncs, on as many connections. So the first of
//! them becomes the leader: it takes a connection, and writes that arrive meanwhile wait and share the next
//! transaction, each in a separate savepoint. So a plugin uses one connection at a time, however busy it is.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadpool_postgres::Transaction;
use tokio::sync::oneshot;

use super::PostgresStore;
use super::key_values::{Change, ChangeResult};
use super::settings::MAX_WAIT;
use crate::error::Error;
use crate::id::PluginId;

/// How many writes share a commit at most, so that the first of them does not wait too long for its answer.
const MAX_SHARED: usize = 64;
/// How many writes of one plugin wait at most; values have up to a megabyte. Further callers get [`Error::Busy`].
const MAX_WAITING: usize = 256;

/// The plugins with a leader, and the changes that wait for it.
#[derive(Default)]
pub(super) struct GroupCommit(Mutex<HashMap<PluginId, Vec<PendingChange>>>);

struct PendingChange {
    change: Change,
    reply: oneshot::Sender<Result<ChangeResult, Error>>,
}

impl GroupCommit {
    fn lock(&self) -> MutexGuard<'_, HashMap<PluginId, Vec<PendingChange>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a change; returns whether there is no leader.
    fn enqueue(&self, waiting: PendingChange) -> Result<bool, Error> {
        match self.lock().entry(waiting.change.namespace.plugin.clone()) {
            Entry::Occupied(others) if others.get().len() >= MAX_WAITING => Err(Error::Busy(MAX_WAIT)),
            Entry::Occupied(mut others) => {
                others.get_mut().push(waiting);
                Ok(false)
            }
            Entry::Vacant(nobody) => {
                nobody.insert(vec![waiting]);
                Ok(true)
            }
        }
    }

    /// The next batch of changes; if there is none, the leader stops.
    fn next_batch(&self, plugin: &PluginId) -> Vec<PendingChange> {
        let mut plugins = self.lock();
        let Some(waiting) = plugins.get_mut(plugin).filter(|waiting| !waiting.is_empty()) else {
            plugins.remove(plugin);
            return Vec::new();
        };
        let size = waiting.len().min(MAX_SHARED);
        waiting.drain(..size).collect()
    }
}

/// Removes the leader even if its task is dropped: waiting callers then get an error that the store is closed.
struct LeaderGuard<'a>(&'a GroupCommit, &'a PluginId);

impl Drop for LeaderGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(self.1);
    }
}

impl PostgresStore {
    /// Makes a change, together with other changes of the same plugin.
    pub(super) async fn change(&self, change: Change) -> Result<ChangeResult, Error> {
        let plugin = change.namespace.plugin.clone();
        let (reply, answer) = oneshot::channel();
        if self.group_commit.enqueue(PendingChange { change, reply })? {
            let store = self.weak_self.upgrade().ok_or(Error::Closed)?;
            // A separate task: the caller may stop waiting, but the other changes still need their leader.
            tokio::spawn(async move { store.lead(&plugin).await });
        }
        answer.await.unwrap_or(Err(Error::Closed))
    }

    async fn lead(&self, plugin: &PluginId) {
        let lead = LeaderGuard(&self.group_commit, plugin);
        loop {
            let together = self.group_commit.next_batch(plugin);
            if together.is_empty() {
                // Since `next` another leader may have started, which must not be removed.
                std::mem::forget(lead);
                return;
            }
            self.commit_and_reply(together).await;
        }
    }

    async fn commit_and_reply(&self, together: Vec<PendingChange>) {
        let (changes, replies): (Vec<_>, Vec<_>) =
            together.into_iter().map(|PendingChange { change, reply }| (change, reply)).unzip();
        let answers = match self.inspect_result(self.commit_batch(&changes).await) {
            Ok(answers) => answers,
            Err(error) => changes.iter().map(|_| Err(duplicate(&error))).collect(),
        };
        for (reply, answer) in replies.into_iter().zip(answers) {
            // The caller may have stopped waiting.
            let _heard = reply.send(answer);
        }
    }

    /// Makes changes in one transaction. If it fails, all of them fail: whether a broken commit succeeded is unknown,
    /// so none of them can be retried here.
    async fn commit_batch(&self, changes: &[Change]) -> Result<Vec<Result<ChangeResult, Error>>, Error> {
        let mut client = self.client().await?;
        let mut transaction = client.transaction().await?;
        let mut answers = Vec::with_capacity(changes.len());
        for change in changes {
            answers.push(apply_in_savepoint(&mut transaction, change).await?);
        }
        let made = answers.iter().filter(|answer| answer.is_ok()).count();
        if made > 0 {
            self.commit(transaction, made as u64).await?;
        }
        Ok(answers)
    }
}

/// Makes one change of several; the outer error is one that also makes the others fail.
async fn apply_in_savepoint(
    transaction: &mut Transaction<'_>,
    change: &Change,
) -> Result<Result<ChangeResult, Error>, Error> {
    let savepoint = transaction.savepoint("change").await?;
    match change.apply(&savepoint).await {
        Ok(changed) => {
            savepoint.commit().await?;
            Ok(Ok(changed))
        }
        // If another transaction has locked the row, each of the other changes would wait as long again.
        Err(error @ (Error::Unavailable { .. } | Error::Busy(_))) => Err(error),
        Err(error) => {
            savepoint.rollback().await?;
            Ok(Err(error))
        }
    }
}

/// A copy of an error for another caller.
fn duplicate(error: &Error) -> Error {
    match error {
        Error::Unavailable { reason, retry_in } => {
            Error::Unavailable { reason: reason.clone(), retry_in: *retry_in }
        }
        Error::Busy(waited) => Error::Busy(*waited),
        Error::Closed => Error::Closed,
        Error::Full(source) => Error::Full(source.to_string().into()),
        Error::Corrupt(source) => Error::Corrupt(source.to_string().into()),
        other => Error::Engine(other.to_string().into()),
    }
}
