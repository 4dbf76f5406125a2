//! How many sessions senders have, so that no one fills the store.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_store::Sessions;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tonic::Status;

use crate::error_status::store_error_status;

/// Senders whose count is known without the store. 4096: all that write at a time. Beyond it all are counted again when they next
/// make a session.
const MAX_SENDERS: usize = 4096;

/// How many sessions senders had when they were last counted, with those that were let in since. The store counts again before anybody
/// is refused, since sessions are deleted in many ways.
#[derive(Debug, Default)]
pub(super) struct SessionCounts(Mutex<HashMap<String, Arc<RwLock<SenderCount>>>>);

/// How many sessions one sender has; `None` before the first count. It is locked shared while a session is being made, and alone while the
/// store counts: so each that was let in is in the store's count.
#[derive(Debug, Default)]
struct SenderCount(Mutex<Option<u32>>);

/// A session that was let in. To be kept until the store has it.
#[must_use]
#[derive(Debug)]
pub(super) struct SessionPlace {
    _making: OwnedRwLockReadGuard<SenderCount>,
}

impl SessionCounts {
    /// Lets in one more session of a sender.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if it has as many as it may.
    pub(super) async fn add(
        &self,
        sessions: &dyn Sessions,
        sender: &str,
        most: u32,
    ) -> Result<SessionPlace, Status> {
        let count = self.of(sender);
        let making = Arc::clone(&count).read_owned().await;
        if making.add(most) {
            return Ok(SessionPlace { _making: making });
        }
        drop(making);
        let alone = count.write_owned().await;
        // Another one may have counted meanwhile.
        if !alone.add(most) {
            let counted = sessions.count(sender, most).await.map_err(|error| store_error_status(&error))?;
            *alone.0.lock() = Some(counted);
            if !alone.add(most) {
                return Err(Status::failed_precondition(format!(
                    "{sender} has {most} sessions, and may have no more (agent.sessions.per_sender): delete some (`talon session delete`), \
                     or have old ones deleted (agent.sessions.delete_after)"
                )));
            }
        }
        Ok(SessionPlace { _making: alone.downgrade() })
    }

    /// The count of a sender.
    fn of(&self, sender: &str) -> Arc<RwLock<SenderCount>> {
        let mut counts = self.0.lock();
        if let Some(count) = counts.get(sender) {
            return Arc::clone(count);
        }
        if counts.len() >= MAX_SENDERS {
            // Whoever is making a session has to meet others who do.
            counts.retain(|_, count| Arc::strong_count(count) > 1);
        }
        let count = Arc::default();
        counts.insert(sender.to_owned(), Arc::clone(&count));
        count
    }
}

impl SenderCount {
    /// Whether the count was known, and there was room.
    fn add(&self, most: u32) -> bool {
        let mut known = self.0.lock();
        match known.as_mut().filter(|count| **count < most) {
            Some(count) => {
                *count += 1;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use talon_store::{Engine, NewSession, StoreOptions};
    use tonic::Code;

    use super::*;

    // Promises: GW-261
    #[tokio::test]
    async fn of_many_sessions_that_are_made_at_once_so_many_are_let_in_as_there_may_be() {
        const MOST: u32 = 10;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("private").join("agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let (sessions, counts) = (store.sessions(), SessionCounts::default());
        let make = |sender: &'static str| {
            let (sessions, counts) = (&sessions, &counts);
            async move {
                let _place = counts.add(&**sessions, sender, MOST).await?;
                let new = NewSession {
                    sender: sender.to_owned(),
                    channel: "cli".to_owned(),
                    ..NewSession::default()
                };
                sessions.create(new).await.map_err(|error| store_error_status(&error))
            }
        };
        let made = join_all((0..2 * MOST).map(|_| make("ada"))).await;
        let refused = made.iter().filter_map(|made| made.as_ref().err());
        assert!(refused.clone().all(|status| status.code() == Code::FailedPrecondition), "{made:?}");
        assert_eq!(refused.count(), 10);
        assert_eq!(sessions.count("ada", 2 * MOST).await.expect("counted"), MOST);
        make("bob").await.expect("others have theirs");
        // What is deleted makes room, however it was deleted.
        for session in made.into_iter().flatten().take(2) {
            assert!(sessions.delete(session.id).await.expect("deleted"));
        }
        let again = join_all((0..MOST).map(|_| make("ada"))).await;
        assert_eq!(again.iter().filter(|made| made.is_ok()).count(), 2);
        assert_eq!(sessions.count("ada", 2 * MOST).await.expect("counted"), MOST);
    }
}
