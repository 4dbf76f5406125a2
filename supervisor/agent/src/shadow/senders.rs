//! Writes of what is known of people. Each one compares: where several agents have one database, none overwrites what another one noted.

use talon_store::Error;

use super::counts::count_held_back;
use super::record::SenderRecord;
use super::shadow_loop::{ShadowLoop, ShadowState};
use super::store::SenderWrite;

impl ShadowLoop {
    /// Stores what is known of a person. `false` if another agent changed it meanwhile: then it is as that one left it, nothing was
    /// stored, and the caller makes its change to that. Each `false` is a write of another agent, so that this comes to an end.
    pub(super) async fn store_sender(
        &self,
        inner: &mut ShadowState,
        record: SenderRecord,
    ) -> Result<bool, Error> {
        let stored = &mut inner.stored;
        let sender = record.sender.clone();
        let before = stored.sender_values.get(&sender).cloned();
        match self.store.swap_sender(&record, before).await? {
            SenderWrite::Written(value) => {
                count_held_back(&self.metrics, stored.senders.get(&sender), &record);
                stored.sender_values.insert(sender.clone(), value);
                stored.senders.insert(sender, record);
                Ok(true)
            }
            SenderWrite::Differs { value, record } => {
                inner.take_sender(&sender, value, record.map(|record| *record));
                Ok(false)
            }
        }
    }
}

impl ShadowState {
    /// What is known of a person is as another agent left it: a value and, if it can be read, its record. What that one asks is not asked
    /// here too.
    pub(super) fn take_sender(&mut self, sender: &str, value: Option<Vec<u8>>, record: Option<SenderRecord>) {
        let stored = &mut self.stored;
        match value {
            Some(value) => drop(stored.sender_values.insert(sender.to_owned(), value)),
            None => drop(stored.sender_values.remove(sender)),
        }
        let Some(record) = record else {
            stored.senders.remove(sender);
            return;
        };
        let known = stored.senders.get(sender).and_then(|known| known.entry.as_ref());
        if let Some(entry) = record.entry.as_ref().filter(|entry| known != Some(*entry)) {
            self.asked_elsewhere.insert(sender.to_owned(), entry.clone());
        }
        stored.senders.insert(sender.to_owned(), record);
    }
}

#[cfg(test)]
#[path = "senders_tests.rs"]
mod tests;
