//! How the writes of one plugin share commits.
//!
//! What a plugin uses is counted in one row, so its writes take turns there, each holding the row until its commit is on
//! the server's disk. Sixty-four of them would wait for sixty-four fsyncs, on as many connections. So the first of them
//! leads: it takes a connection, and whoever comes meanwhile waits for the next transaction and goes along in it, each in
//! a savepoint of its own. A plugin thus has one connection at a time, however busy it is.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadpool_postgres::Transaction;
use tokio::sync::oneshot;

use super::PostgresStore;
use super::key_values::{Change, Changed};
use super::settings::MAX_WAIT;
use crate::error::Error;
use crate::id::PluginId;

/// How many writes share a commit at most, so that the first of them is not kept from its answer for long.
const MAX_SHARED: usize = 64;
/// How many writes of one plugin wait at most; values are up to a megabyte. Whoever comes then is told to come later.
const MAX_WAITING: usize = 256;

/// The plugins that somebody leads for, with those who wait.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<PluginId, Vec<Waiting>>>);

struct Waiting {
    change: Change,
    reply: oneshot::Sender<Result<Changed, Error>>,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashMap<PluginId, Vec<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait; says whether there is nobody who leads.
    fn join(&self, waiting: Waiting) -> Result<bool, Error> {
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

    /// The next who go together; with none, the lead ends.
    fn next(&self, plugin: &PluginId) -> Vec<Waiting> {
        let mut plugins = self.lock();
        let Some(waiting) = plugins.get_mut(plugin).filter(|waiting| !waiting.is_empty()) else {
            plugins.remove(plugin);
            return Vec::new();
        };
        let size = waiting.len().min(MAX_SHARED);
        waiting.drain(..size).collect()
    }
}

/// Ends the lead also when its task is: those who wait are then told that the store is closed.
struct Lead<'a>(&'a Turns, &'a PluginId);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(self.1);
    }
}

impl PostgresStore {
    /// Makes a change with whoever else changes something of the same plugin.
    pub(super) async fn change(&self, change: Change) -> Result<Changed, Error> {
        let plugin = change.namespace.plugin.clone();
        let (reply, answer) = oneshot::channel();
        if self.turns.join(Waiting { change, reply })? {
            let store = self.me.upgrade().ok_or(Error::Closed)?;
            // A task of its own: the caller may stop waiting, and the others are not to lose their lead.
            tokio::spawn(async move { store.lead(&plugin).await });
        }
        answer.await.unwrap_or(Err(Error::Closed))
    }

    async fn lead(&self, plugin: &PluginId) {
        let lead = Lead(&self.turns, plugin);
        loop {
            let together = self.turns.next(plugin);
            if together.is_empty() {
                // Between `next` and here another may have begun to lead, whom this is not to end.
                std::mem::forget(lead);
                return;
            }
            self.serve(together).await;
        }
    }

    async fn serve(&self, together: Vec<Waiting>) {
        let (changes, replies): (Vec<_>, Vec<_>) =
            together.into_iter().map(|Waiting { change, reply }| (change, reply)).unzip();
        let answers = match self.seen(self.together(&changes).await) {
            Ok(answers) => answers,
            Err(error) => changes.iter().map(|_| Err(again(&error))).collect(),
        };
        for (reply, answer) in replies.into_iter().zip(answers) {
            // Whoever asked may have stopped waiting.
            let _heard = reply.send(answer);
        }
    }

    /// One transaction. Its failure is everybody's: whether a commit that broke was made is not known, so none of them can
    /// be tried again here.
    async fn together(&self, changes: &[Change]) -> Result<Vec<Result<Changed, Error>>, Error> {
        let mut client = self.client().await?;
        let mut transaction = client.transaction().await?;
        let mut answers = Vec::with_capacity(changes.len());
        for change in changes {
            answers.push(saved(&mut transaction, change).await?);
        }
        let made = answers.iter().filter(|answer| answer.is_ok()).count();
        if made > 0 {
            self.commit(transaction, made as u64).await?;
        }
        Ok(answers)
    }
}

/// Makes one change of several; the outer error is one that the others cannot survive either.
async fn saved(transaction: &mut Transaction<'_>, change: &Change) -> Result<Result<Changed, Error>, Error> {
    let savepoint = transaction.savepoint("change").await?;
    match change.make(&savepoint).await {
        Ok(changed) => {
            savepoint.commit().await?;
            Ok(Ok(changed))
        }
        // A row that somebody else holds is the same for all: each of them would wait as long again.
        Err(error @ (Error::Unavailable { .. } | Error::Busy(_))) => Err(error),
        Err(error) => {
            savepoint.rollback().await?;
            Ok(Err(error))
        }
    }
}

/// The same error for another who had it.
fn again(error: &Error) -> Error {
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
