//! What sessions and messages are found by.

use super::{Message, SessionState};
use crate::error::Error;
use crate::id::SessionId;
use crate::limits::name;
use crate::time::Timestamp;

/// Which sessions. Everything that is set has to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Who talks.
    pub sender: Option<String>,
    /// Where.
    pub channel: Option<String>,
    /// Whether somebody does.
    pub state: Option<SessionState>,
    /// Written to at this time or later.
    pub updated_since: Option<Timestamp>,
}

/// Which messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// All these words are in the message. A word is found by its beginning, accents and capitals do not count,
    /// Chinese, Japanese and the like are found by any part, and what is joined by anything but spaces has to be so
    /// in the message too.
    pub text: String,
    /// In this session alone.
    pub session: Option<SessionId>,
    /// In sessions with this sender alone.
    pub sender: Option<String>,
    /// In sessions on this channel alone.
    pub channel: Option<String>,
    /// Also what a summary has replaced.
    pub include_replaced: bool,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageHit {
    /// Where it is.
    pub session: SessionId,
    /// The message.
    pub message: Message,
}

impl SessionFilter {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check(self.sender.as_deref(), self.channel.as_deref())
    }
}

impl SessionQuery {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check(self.sender.as_deref(), self.channel.as_deref())
    }
}

/// What no session can have is a mistake of whoever asks for it.
fn check(sender: Option<&str>, channel: Option<&str>) -> Result<(), Error> {
    sender.map_or(Ok(()), |sender| name("a session's sender", sender))?;
    channel.map_or(Ok(()), |channel| name("a session's channel", channel))
}
