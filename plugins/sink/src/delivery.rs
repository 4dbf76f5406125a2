//! What a sink answers.
//!
//! The SDK's `Delivery` has no reason for what is delivered, which receivers that did not get a message need, and its texts cannot be
//! read back.

use std::time::Duration;

use serde::Serialize;
use talon_sdk::channel::ChannelReply;
use talon_sdk::{Output, ToolError};

use crate::peer_text::one_line;

/// What became of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The server has it. With a line about what is worth knowing, if anything is.
    Delivered(Option<String>),
    /// It may work later: why it did not, and when the server wants to be asked again.
    Retry(String, Option<Duration>),
    /// It will not work, however often it is tried: why.
    Refused(String),
}

impl Delivery {
    /// It may work later.
    #[must_use]
    pub fn retry(reason: impl AsRef<str>) -> Self {
        Self::Retry(one_line(reason.as_ref()), None)
    }

    /// It will not work.
    #[must_use]
    pub fn refused(reason: impl AsRef<str>) -> Self {
        Self::Refused(one_line(reason.as_ref()))
    }

    /// The same as the answer of a channel.
    pub fn channel_reply(&self) -> ChannelReply {
        match self {
            Self::Delivered(_) => ChannelReply::delivered(),
            Self::Retry(reason, None) => ChannelReply::retry(reason),
            Self::Retry(reason, Some(after)) => ChannelReply::retry(reason).after(*after),
            Self::Refused(reason) => ChannelReply::refused(reason),
        }
    }

    /// The answer of the action.
    ///
    /// # Errors
    /// None today; as [`Output::structured`] says.
    pub fn output(&self) -> Result<Output, ToolError> {
        let (status, reason, after) = match self {
            Self::Delivered(reason) => ("delivered", reason.as_deref(), None),
            Self::Retry(reason, after) => ("retry", Some(reason.as_str()), *after),
            Self::Refused(reason) => ("refused", Some(reason.as_str()), None),
        };
        let text = reason.map_or_else(|| status.to_owned(), |reason| format!("{status}: {reason}"));
        let after = after.map(|after| after.as_secs());
        Output::text(text).structured(Answer { status, reason, retry_after_seconds: after })
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}
