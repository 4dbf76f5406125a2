//! Who has got which message already.
//!
//! A notification comes again when some of its receivers were told to wait, or when the answer about it got lost; those who
//! have it are then left out. It is kept in memory: after a restart of the plugin a message may come twice, and its
//! Message-ID says so.

use std::collections::{BTreeSet, VecDeque};

use lettre::Address;
use parking_lot::Mutex;

/// The most messages that are remembered. An entry has one under way at a time; at this limit the oldest is forgotten.
const MAX_MESSAGES: usize = 1000;

/// Receivers by message.
#[derive(Debug, Default)]
pub(crate) struct SentBefore(Mutex<VecDeque<(String, BTreeSet<Address>)>>);

impl SentBefore {
    /// Who has got this message.
    pub(crate) fn receivers(&self, message_id: &str) -> BTreeSet<Address> {
        let messages = self.0.lock();
        let found = messages.iter().find(|(id, _)| id == message_id);
        found.map(|(_, receivers)| receivers.clone()).unwrap_or_default()
    }

    /// Notes who has got it now.
    pub(crate) fn add(&self, message_id: &str, receivers: &[Address]) {
        let mut messages = self.0.lock();
        if let Some((_, known)) = messages.iter_mut().find(|(id, _)| id == message_id) {
            known.extend(receivers.iter().cloned());
            return;
        }
        if messages.len() == MAX_MESSAGES {
            messages.pop_front();
        }
        messages.push_back((message_id.to_owned(), receivers.iter().cloned().collect()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_remembered_up_to_a_limit() {
        let sent = SentBefore::default();
        let address = |name: &str| format!("{name}@example.org").parse::<Address>().expect("an address");
        sent.add("0", &[address("ada")]);
        sent.add("0", &[address("grace")]);
        assert_eq!(sent.receivers("0").len(), 2);
        for number in 1..=MAX_MESSAGES {
            sent.add(&number.to_string(), &[address("ada")]);
        }
        assert!(sent.receivers("0").is_empty());
        assert_eq!(sent.receivers("1").len(), 1);
    }
}
