//! The messages of one sender or group that wait.

use std::collections::VecDeque;

use super::pending::PendingMessage;

/// The messages of one sender or group that wait; the first one is worked on.
#[derive(Debug, Default)]
pub(super) struct Lane {
    waiting: VecDeque<PendingMessage>,
    /// Whether it was said that there is no room, since there was some.
    said_full: bool,
}

impl Lane {
    pub(super) fn push(&mut self, message: PendingMessage) {
        self.waiting.push_back(message);
    }

    pub(super) fn first(&self) -> Option<PendingMessage> {
        self.waiting.front().cloned()
    }

    /// The first one is answered.
    pub(super) fn pop(&mut self) {
        self.waiting.pop_front();
        self.said_full = false;
    }

    /// There is no room. Returns whether that has to be said: once, until there is some.
    pub(super) fn say_full(&mut self) -> bool {
        !std::mem::replace(&mut self.said_full, true)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether it has the message of an event.
    pub(super) fn has(&self, channel: &str, event: &str) -> bool {
        self.waiting.iter().any(|message| message.channel == channel && message.event == event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_no_room_is_said_once_until_there_is_some() {
        let mut lane = Lane::default();
        assert!(lane.say_full() && !lane.say_full());
        lane.pop();
        assert!(lane.say_full() && !lane.say_full());
    }
}
