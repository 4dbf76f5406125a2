//! What a stream of the plugins' events is read for.

use talon_proto::host::HostEvent;

use super::inbound::is_message;

/// Which of a channel's events a stream is read for. There are two streams of the same events, each with a cursor of its own: messages may
/// have to wait for room, and what makes room may be a button that was told after them. Each is read in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventReader {
    /// Messages.
    Messages,
    /// Buttons, that a plugin has started, what a channel does not pass on, and texts as far as they answer a question that waits.
    Buttons,
}

impl EventReader {
    /// Whether it takes this event.
    pub(super) fn reads(self, event: &HostEvent) -> bool {
        is_message(event) == (self == Self::Messages)
    }

    /// By what its cursor is stored.
    pub(super) fn source(self, source: &str) -> String {
        match self {
            Self::Messages => source.to_owned(),
            Self::Buttons => format!("buttons {source}"),
        }
    }
}
