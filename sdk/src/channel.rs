//! What a channel is asked, what it answers, and what its plugin tells as events.
//!
//! A channel is a place where people talk to the agent, such as a chat service. Its plugin tells what they write with an
//! [`EventSource`](crate::EventSource), and its action, a function with [`#[channel]`](macro@crate::channel), sends the answers.
//! docs/extensions/channel.md has what is in the events.
//!
//! ```
//! use talon_sdk::channel::{ChannelFeature, ChannelOp, ChannelReply, ChannelRequest};
//! use talon_sdk::ToolError;
//!
//! /// Sends answers to nobody.
//! #[talon_sdk::channel]
//! async fn nowhere(asked: ChannelRequest) -> Result<ChannelReply, ToolError> {
//!     Ok(match asked.op {
//!         ChannelOp::Open => ChannelReply::delivered().supporting([ChannelFeature::Typing]),
//!         ChannelOp::Send | ChannelOp::Typing => ChannelReply::delivered(),
//!         ChannelOp::Fetch => ChannelReply::refused("there are no files"),
//!     })
//! }
//! # assert_eq!(nowhere().action().roles, ["channel"]);
//! ```

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::IntoOutput;
use crate::text::cut;
use crate::{Output, SourceEvent, StorageBytes, ToolError};

/// The topic of the event of a message.
pub const MESSAGE_TOPIC: &str = "channel.message";
/// The topic of the event of a button that somebody pressed.
pub const BUTTON_TOPIC: &str = "channel.button";
/// The topic of the event by which a plugin that has started asks to be opened.
pub const CLOSED_TOPIC: &str = "channel.closed";
/// The topic of the event of something that the channel does not pass on, such as an edit of a message.
pub const UNSUPPORTED_TOPIC: &str = "channel.unsupported";
/// The longest text that an event takes.
pub const MAX_TEXT_BYTES: usize = 16 << 10;
/// The most files of one message.
pub const MAX_FILES: usize = 8;
/// The most bytes of a file in one answer.
pub const MAX_PIECE_BYTES: usize = 512 << 10;
/// The longest id of a file. With the longest name it fits into a field of an event.
pub const MAX_FILE_ID_BYTES: usize = 256;
/// How much of a file's name is told.
const MAX_FILE_NAME_BYTES: usize = 96;

/// What a channel is asked: the parameter of a function with [`#[channel]`](macro@crate::channel).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ChannelRequest {
    /// What to do.
    pub op: ChannelOp,
    /// Of `send`: what identifies the message, the same in every attempt.
    #[serde(default)]
    pub id: String,
    /// Of `send` and `typing`: where to, as an event of the plugin's said.
    #[serde(default)]
    pub conversation: String,
    /// Of `send`: the text, or what of it was not sent yet.
    #[serde(default)]
    pub text: String,
    /// Of `send`: buttons below the text.
    #[serde(default)]
    pub buttons: Vec<ChannelButton>,
    /// Of `send`: the number of the attempt, from 1.
    #[serde(default)]
    pub attempt: u32,
    /// Of `fetch`: the id of a file, as a message had it.
    #[serde(default)]
    pub file: String,
    /// Of `fetch`: from which byte on.
    #[serde(default)]
    pub offset: u64,
    /// Of `fetch`: the most bytes that the whole file may have.
    #[serde(default)]
    pub max_bytes: u64,
}

/// What a channel is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelOp {
    /// Be ready to listen.
    Open,
    /// Send a text.
    Send,
    /// Show that an answer is being written. Asked of channels that support it, every few seconds.
    Typing,
    /// Give a piece of a file: at most [`MAX_PIECE_BYTES`].
    Fetch,
}

/// A button below a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ChannelButton {
    /// What the event of it says.
    pub id: String,
    /// What stands on it.
    pub label: String,
}

/// What a channel can beside sending texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelFeature {
    /// It shows that an answer is being written.
    Typing,
}

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelFile {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl ChannelFile {
    /// A file: the id with which it is fetched (1 to [`MAX_FILE_ID_BYTES`] printable ASCII characters without quotes and backslashes;
    /// `None` for another one), what its sender calls it, and its size if that is known. A long name is cut.
    #[must_use]
    pub fn new(id: impl Into<String>, name: &str, bytes: Option<u64>) -> Option<Self> {
        let id = id.into();
        let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
        if id.is_empty() || id.len() > MAX_FILE_ID_BYTES || !is_plain {
            return None;
        }
        let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Some(Self { id, name: cut(&name, MAX_FILE_NAME_BYTES).to_owned(), bytes })
    }
}

/// Puts files into the event of a message: the first [`MAX_FILES`] of them.
#[must_use]
pub fn with_files(event: SourceEvent, files: &[ChannelFile]) -> SourceEvent {
    files.iter().take(MAX_FILES).enumerate().fold(event, |event, (number, file)| {
        // The type has string keys only, so that it is always JSON.
        let json = serde_json::to_string(file).unwrap_or_default();
        event.field(format!("file_{}", number + 1), json)
    })
}

/// What became of it. An error of the function counts as [`retry`](Self::retry).
#[must_use = "an answer is not known until it is returned"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChannelReply {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    supports: Vec<ChannelFeature>,
    #[serde(skip_serializing_if = "Option::is_none")]
    piece: Option<StorageBytes>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

impl ChannelReply {
    fn of(status: &'static str, reason: Option<String>) -> Self {
        Self {
            status,
            reason,
            retry_after_seconds: None,
            sent_bytes: None,
            supports: Vec::new(),
            piece: None,
            more: false,
        }
    }

    /// It is done.
    pub fn delivered() -> Self {
        Self::of("delivered", None)
    }

    /// So many bytes of the text were sent; the rest is asked for by another call.
    pub fn sent(bytes: usize) -> Self {
        Self { sent_bytes: Some(bytes), ..Self::delivered() }
    }

    /// A piece of a file, and whether more of it follows.
    pub fn piece(bytes: &[u8], more: bool) -> Self {
        Self { piece: Some(StorageBytes::seal(bytes)), more, ..Self::delivered() }
    }

    /// Not yet: it is tried again.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::of("retry", Some(reason.into()))
    }

    /// Never: it is not tried again, and the log says why.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::of("refused", Some(reason.into()))
    }

    /// The least time until the next attempt, in whole seconds rounded up. Of [`retry`](Self::retry); at most an hour counts.
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after_seconds = Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        self
    }

    /// What the channel can beside sending texts. Of [`delivered`](Self::delivered), as the answer to [`ChannelOp::Open`].
    pub fn supporting(mut self, features: impl IntoIterator<Item = ChannelFeature>) -> Self {
        self.supports = features.into_iter().collect();
        self
    }

    /// Whether it is done.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.status == "delivered"
    }
}

impl IntoOutput for ChannelReply {
    fn into_output(self) -> Result<Output, ToolError> {
        // A piece of a file has no place in a text.
        let text = self.reason.as_ref().map(|reason| format!("{}: {reason}", self.status));
        Output::text(text.unwrap_or_else(|| self.status.to_owned())).structured(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(reply: ChannelReply) -> Value {
        reply.into_output().expect("JSON").structured_content().cloned().expect("data")
    }

    #[test]
    fn an_answer_is_structured_content() {
        assert_eq!(said(ChannelReply::sent(4)), json!({"status": "delivered", "sent_bytes": 4}));
        assert_eq!(
            said(ChannelReply::delivered().supporting([ChannelFeature::Typing])),
            json!({"status": "delivered", "supports": ["typing"]})
        );
        assert_eq!(
            said(ChannelReply::retry("busy").after(Duration::from_millis(1500))),
            json!({"status": "retry", "reason": "busy", "retry_after_seconds": 2})
        );
        let piece = said(ChannelReply::piece(&[0, 255], true));
        assert_eq!((&piece["piece"]["data"], &piece["more"]), (&json!("AP8"), &json!(true)));
    }

    #[test]
    fn a_file_fits_into_a_field_whatever_it_is_called() {
        let event = || SourceEvent::new("m/1", MESSAGE_TOPIC, "A message");
        for (id, name) in [("x".repeat(256), "\"\\".repeat(200)), ("f".to_owned(), "\u{7}\u{1f}ü".repeat(90))]
        {
            let file = ChannelFile::new(id.clone(), &name, Some(u64::MAX)).expect("a file");
            let event = with_files(event(), &[file]);
            let field = event.value("file_1").expect("a field");
            let read: Value = serde_json::from_str(field).expect("it was not cut");
            assert_eq!((read["id"].as_str(), field.len() <= 512), (Some(id.as_str()), true), "{field}");
        }
        for wrong in ["", "a\"", "a b", "ü", &"x".repeat(257)] {
            assert_eq!(ChannelFile::new(wrong, "a", None), None, "{wrong}");
        }
        let nine: Vec<_> = (0..9).filter_map(|_| ChannelFile::new("f", "a", None)).collect();
        let event = with_files(event(), &nine);
        assert!(event.value("file_8").is_some() && event.value("file_9").is_none());
    }
}
