//! How many sessions senders have, so that no one fills the store.

use std::collections::HashMap;

use parking_lot::Mutex;
use talon_store::Sessions;
use tonic::Status;

use crate::error_status::store_error_status;

/// Senders whose count is known without the store. 4096: all that write at a time. Beyond it all are counted again when they next
/// make a session.
const MAX_SENDERS: usize = 4096;

/// How many sessions senders had when they were last counted, with those that were made since. The store counts again before anybody
/// is refused, since sessions are deleted in many ways.
#[derive(Debug, Default)]
pub(super) struct SessionCounts(Mutex<HashMap<String, u32>>);

impl SessionCounts {
    /// Counts one more session of a sender.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if it has as many as it may.
    pub(super) async fn add(&self, sessions: &dyn Sessions, sender: &str, most: u32) -> Result<(), Status> {
        if self.add_known(sender, most) {
            return Ok(());
        }
        let counted = sessions.count(sender, most).await.map_err(|error| store_error_status(&error))?;
        self.know(sender, counted, most);
        if self.add_known(sender, most) {
            return Ok(());
        }
        Err(Status::failed_precondition(format!(
            "{sender} has {most} sessions, and may have no more (agent.sessions.per_sender): delete some (`talon session delete`), \
             or have old ones deleted (agent.sessions.delete_after)"
        )))
    }

    /// Whether the count was known, and there was room.
    fn add_known(&self, sender: &str, most: u32) -> bool {
        match self.0.lock().get_mut(sender).filter(|count| **count < most) {
            Some(count) => {
                *count += 1;
                true
            }
            None => false,
        }
    }

    /// Takes what the store counted, unless somebody else has counted meanwhile: sessions that are being made are in that count already.
    fn know(&self, sender: &str, count: u32, most: u32) {
        let mut counts = self.0.lock();
        if counts.get(sender).is_some_and(|known| *known < most) {
            return;
        }
        if counts.len() >= MAX_SENDERS && !counts.contains_key(sender) {
            counts.clear();
        }
        counts.insert(sender.to_owned(), count);
    }
}
