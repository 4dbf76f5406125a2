//! Makes the changes of a [`GroupCommit`](super::group_commit::GroupCommit): several in one transaction.

use deadpool_postgres::Transaction;
use tokio::sync::oneshot;

use super::PostgresStore;
use super::change::apply;
use super::group_commit::{LeaderGuard, PendingChange};
use crate::change::{Change, ChangeResult};
use crate::error::Error;
use crate::id::PluginId;

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
                // Since `next_batch` another leader may have started, which must not be removed.
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
            let _sent = reply.send(answer);
        }
    }

    /// Makes changes in one transaction. If it fails, all of them fail: whether a broken commit succeeded is
    /// unknown, so none of them can be retried here.
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
    match apply(change, &savepoint).await {
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
