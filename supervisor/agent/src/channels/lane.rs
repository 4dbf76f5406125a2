//! The messages of one sender or group that wait.

use std::collections::VecDeque;

use super::pending::PendingMessage;

/// The messages of one sender or group that wait; the first one is worked on.
#[derive(Debug, Default)]
pub(super) struct Lane(VecDeque<PendingMessage>);

impl Lane {
    pub(super) fn push(&mut self, message: PendingMessage) {
        self.0.push_back(message);
    }

    pub(super) fn first(&self) -> Option<PendingMessage> {
        self.0.front().cloned()
    }

    /// The first one is answered.
    pub(super) fn pop(&mut self) {
        self.0.pop_front();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has the message of an event.
    pub(super) fn has(&self, channel: &str, event: &str) -> bool {
        self.0.iter().any(|message| message.channel == channel && message.event == event)
    }
}
