//! Messages, and how a compaction changes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::limits::{MAX_APPEND, MAX_CONTENT_BYTES, MAX_TOOL_JSON_BYTES, count, name, size};
use crate::time::Timestamp;

/// A message to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// The speaker.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The tool calls that the model requests, as it wrote them.
    pub tool_calls: Option<Value>,
    /// The tools' answers.
    pub tool_results: Option<Value>,
    /// A name that no other message of the session may have: who writes it a second time gets
    /// [`Error::KeyExists`].
    pub key: Option<String>,
}

impl NewMessage {
    /// A message with text only.
    #[must_use]
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: None, tool_results: None, key: None }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check(&self.content, self.tool_calls.as_ref(), self.tool_results.as_ref())?;
        check_key(self.key.as_deref())
    }

    pub(crate) fn at(self, sequence: u64, at: Timestamp) -> Message {
        let Self { role, content, tool_calls, tool_results, key } = self;
        let (summarizes, replaced_by) = (None, None);
        Message { sequence, role, content, tool_calls, tool_results, at, summarizes, replaced_by, key }
    }
}

/// One message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its number in the session, starting at 1; numbers are never reused.
    pub sequence: u64,
    /// The speaker.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The tool calls that the model requests, as it wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Value>,
    /// The tools' answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<Value>,
    /// When it was written.
    pub at: Timestamp,
    /// For a summary: the last message that it replaced, whose place in the live view it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarizes: Option<u64>,
    /// The summary that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<u64>,
    /// Its name in the session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Message {
    /// Its size in a page.
    pub(crate) fn weight(&self) -> usize {
        let json = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
        self.content.len() + json(&self.tool_calls) + json(&self.tool_results)
    }

    /// Its position in the live view.
    pub(crate) fn position(&self) -> u64 {
        self.summarizes.unwrap_or(self.sequence)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.summarizes.is_some_and(|last| last >= self.sequence) {
            return Err(Error::invalid("a summary", "must be younger than what it replaced"));
        }
        if self.replaced_by.is_some_and(|summary| summary <= self.sequence) {
            return Err(Error::invalid("a replaced message", "must be older than its summary"));
        }
        check(&self.content, self.tool_calls.as_ref(), self.tool_results.as_ref())?;
        check_key(self.key.as_deref())
    }
}

/// The token for the page after a message.
pub(crate) fn message_token(message: &Message) -> Vec<u8> {
    format!("{},{}", message.position(), message.sequence).into_bytes()
}

/// Refuses messages that cannot be appended.
pub(crate) fn check_append(messages: &[NewMessage]) -> Result<(), Error> {
    if messages.is_empty() {
        return Err(Error::invalid("an append", "must have a message"));
    }
    count("the messages of an append", messages.len(), MAX_APPEND)?;
    messages.iter().try_for_each(NewMessage::check)
}

fn check(content: &str, calls: Option<&Value>, results: Option<&Value>) -> Result<(), Error> {
    size("a message's content", content.len(), MAX_CONTENT_BYTES)?;
    for (what, json) in [("a message's tool calls", calls), ("a message's tool results", results)] {
        if let Some(json) = json {
            size(what, json.to_string().len(), MAX_TOOL_JSON_BYTES)?;
        }
    }
    Ok(())
}

fn check_key(key: Option<&str>) -> Result<(), Error> {
    key.map_or(Ok(()), |key| name("a message's key", key)).map_err(Error::from)
}

/// The speaker of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instructions before the conversation; also a summary.
    System,
    /// The person, or the program that acts for one.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    pub(crate) fn parse(word: &str) -> Result<Self, Error> {
        let all = [Self::System, Self::User, Self::Assistant, Self::Tool];
        all.into_iter()
            .find(|role| role.word() == word)
            .ok_or_else(|| Error::unreadable("message's role", format!("`{word}`")))
    }
}

/// A selection of a session's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// What the model is to see: summaries instead of what they replaced.
    Live,
    /// Every message, in the order of writing.
    All,
    /// The messages that this summary replaced.
    ReplacedBy(u64),
}

/// A compaction of a session. The caller has to know which messages belong together, such as a tool call and
/// its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// The last message to replace, with all before it in the live view.
    pub through: u64,
    /// The summary that replaces them.
    pub summary: NewMessage,
}

impl Compaction {
    pub(crate) fn check(&self, next: u64) -> Result<(), Error> {
        if (1..next).contains(&self.through) {
            return Ok(());
        }
        Err(Error::invalid(
            "the last message of a compaction",
            format!("must be one of the session's, below {next}"),
        ))
    }

    pub(crate) fn nothing() -> Error {
        Error::invalid("a compaction", "must replace a message of the live view")
    }
}
