//! What waits to be written.

use super::line::Line;

/// An entry of the queue.
pub(crate) enum QueueEntry {
    /// A line of text, formatted by the subscriber.
    Text(Vec<u8>),
    /// A line as values.
    Line(Box<Line>),
    /// The number of lines that were dropped.
    Dropped(u64),
}
