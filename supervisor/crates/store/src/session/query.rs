//! Queries for sessions and messages.

use super::{Message, SessionState};
use crate::id::SessionId;
use crate::invalid::InvalidError;
use crate::limits::name;
use crate::time::Timestamp;

/// A filter for sessions. Every condition that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The sender.
    pub sender: Option<String>,
    /// The channel.
    pub channel: Option<String>,
    /// The state.
    pub state: Option<SessionState>,
    /// Written to at this time or later.
    pub updated_since: Option<Timestamp>,
    /// Last written to before this time.
    pub updated_before: Option<Timestamp>,
}

/// A search for messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// All these words are in the message. Words match by prefix; accents and case do not matter; Chinese,
    /// Japanese and the like match by any part. Words joined by anything but spaces must be joined in the
    /// message too.
    pub text: String,
    /// Only in this session.
    pub session: Option<SessionId>,
    /// Only in sessions with this sender.
    pub sender: Option<String>,
    /// Only in sessions on this channel.
    pub channel: Option<String>,
    /// Also messages that a summary has replaced.
    pub include_replaced: bool,
}

/// A found message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageHit {
    /// Its session.
    pub session: SessionId,
    /// The message.
    pub message: Message,
}

impl SessionFilter {
    pub(crate) fn check(&self) -> Result<(), InvalidError> {
        check(self.sender.as_deref(), self.channel.as_deref())
    }
}

impl SessionQuery {
    pub(crate) fn check(&self) -> Result<(), InvalidError> {
        check(self.sender.as_deref(), self.channel.as_deref())
    }
}

/// A value that no session can have is an error of the caller.
fn check(sender: Option<&str>, channel: Option<&str>) -> Result<(), InvalidError> {
    sender.map_or(Ok(()), |sender| name("a session's sender", sender))?;
    channel.map_or(Ok(()), |channel| name("a session's channel", channel))
}
