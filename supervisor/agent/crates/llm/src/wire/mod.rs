//! Wire formats: frames of a stream, and names and ids that every provider accepts.

mod events;
mod images;
mod lines;
mod names;
mod retry_after;
mod surrogates;
mod think_tags;
mod transcript;

pub(crate) use events::Events;
pub(crate) use images::{ImagePart, data_url, image_parts};
pub(crate) use lines::{LineBreaks, Lines};
pub(crate) use names::{nine_characters, sent_id, sent_name};
pub(crate) use retry_after::{retry_after, stated_wait};
pub(crate) use surrogates::SurrogatePairs;
pub(crate) use think_tags::{Piece, ThinkTags};
pub(crate) use transcript::{
    called_name, error_text, fits, joined_system, number, schema_in_words, sent_arguments,
};

/// A frame of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The kind of an event; empty for lines, and for events that name none.
    pub(crate) event: String,
    /// Its data.
    pub(crate) data: String,
}

/// A line or an event is longer than [`crate::limits::MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLongError;

/// Assembles frames from bytes in arbitrary pieces.
pub(crate) trait Framing: Send {
    /// Takes more bytes.
    fn feed(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), TooLongError>;
    /// The stream has ended; returns the remaining frame if it may be complete.
    fn end(&mut self, frames: &mut Vec<Frame>);
}
