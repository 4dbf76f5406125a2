//! Whom another agent with the same database forgot. Each agent has everything in memory, and reads of the disk only whether somebody was
//! forgotten: a value that changes with each time. If it is another one than is known, what the disk has no more goes from memory, too.

use std::collections::BTreeMap;

use talon_store::Error;
use tokio::sync::MutexGuard;

use super::shadow_loop::{ShadowLoop, ShadowState};
use super::store::StoredShadow;

impl ShadowLoop {
    /// The state, of nobody who was forgotten.
    ///
    /// # Errors
    /// Those of the store: then it is not known who was forgotten.
    pub(super) async fn current(&self) -> Result<MutexGuard<'_, ShadowState>, Error> {
        let mut inner = self.inner.lock().await;
        let epoch = self.store.forget_epoch().await?;
        if epoch != inner.stored.forget_epoch {
            let on_disk = self.store.load().await?;
            self.drop_forgotten(&mut inner, on_disk);
            // The one that was read first: who is forgotten meanwhile is looked for once more.
            inner.stored.forget_epoch = epoch;
        }
        Ok(inner)
    }

    /// Removes what the disk has no more, and takes what is known of people as it is there.
    fn drop_forgotten(&self, inner: &mut ShadowState, on_disk: StoredShadow) {
        let StoredShadow { mut senders, sender_values, ghosts, log, goals, .. } = on_disk;
        keep_those_of(&mut inner.stored.ghosts, &ghosts);
        keep_those_of(&mut inner.stored.log, &log);
        keep_those_of(&mut inner.stored.goals, &goals);
        let known: Vec<String> = inner.stored.sender_values.keys().cloned().collect();
        for sender in known {
            let value = sender_values.get(&sender);
            // What is in memory may know of more than the same value on the disk.
            if value != inner.stored.sender_values.get(&sender) {
                inner.take_sender(&sender, value.cloned(), senders.remove(&sender));
            }
        }
        inner.asked_elsewhere.retain(|sender, _| sender_values.contains_key(sender));
        self.watchers.keep(|sender| sender_values.contains_key(sender));
    }
}

fn keep_those_of<T>(known: &mut BTreeMap<String, T>, on_disk: &BTreeMap<String, T>) {
    known.retain(|id, _| on_disk.contains_key(id));
}

#[cfg(test)]
#[path = "forget_epoch_tests.rs"]
mod tests;
